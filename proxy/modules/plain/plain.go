// Package plain gives the variables of ngx_http_ssl_module, ngx_http_v2_module and
// ngx_http_v3_module the values that they have on connections that speak plain HTTP/1, the only
// ones that the proxy accepts (a listen with ssl, http2 or quic is refused).
package plain

import (
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// Module declares the variables.
var Module = &http.Module{Name: "ngx_http_ssl_module", Preconf: declare}

// tls are ngx_http_ssl_vars: without TLS none of them has a value.
var tls = []string{
	"ssl_protocol", "ssl_cipher", "ssl_ciphers", "ssl_curve", "ssl_curves", "ssl_session_id", "ssl_session_reused",
	"ssl_early_data", "ssl_server_name", "ssl_alpn_protocol", "ssl_client_cert", "ssl_client_raw_cert",
	"ssl_client_escaped_cert", "ssl_client_s_dn", "ssl_client_i_dn", "ssl_client_s_dn_legacy", "ssl_client_i_dn_legacy",
	"ssl_client_serial", "ssl_client_fingerprint", "ssl_client_verify", "ssl_client_v_start", "ssl_client_v_end",
	"ssl_client_v_remain",
}

func declare(cf *module.Conf) error {
	for _, name := range tls {
		v, err := http.AddVariable(cf, name, http.VarChangeable)
		if err != nil {
			return err
		}
		v.Get = func(_ *http.Request, v *http.VarValue, _ any) http.Rc { return v.Missing() }
	}
	for _, name := range []string{"http2", "http3"} { // empty when the protocol is not spoken
		v, err := http.AddVariable(cf, name, 0)
		if err != nil {
			return err
		}
		v.Get = func(_ *http.Request, v *http.VarValue, _ any) http.Rc {
			*v = http.VarNull
			return http.OK
		}
	}
	return nil
}
