package http

import "nginxoracle/proxy/module"

// absentVariables are the variables of nginx's modules that the proxy has not: their names are taken,
// count in variables_hash, and give what nginx gives where such a module was never asked to do
// anything; those whose value would need the module are refused where they are used (get is nil).
var absentVariables = []struct {
	names []string
	flags int
	get   func(*Request, *VarValue, any) Rc
}{
	{ // ngx_http_ssl_module.c: no connection is encrypted
		[]string{"ssl_protocol", "ssl_cipher", "ssl_ciphers", "ssl_curve", "ssl_curves", "ssl_session_id", "ssl_session_reused",
			"ssl_early_data", "ssl_server_name", "ssl_alpn_protocol", "ssl_client_cert", "ssl_client_raw_cert",
			"ssl_client_escaped_cert", "ssl_client_s_dn", "ssl_client_i_dn", "ssl_client_s_dn_legacy",
			"ssl_client_i_dn_legacy", "ssl_client_serial", "ssl_client_fingerprint", "ssl_client_verify",
			"ssl_client_v_start", "ssl_client_v_end", "ssl_client_v_remain"},
		VarChangeable, missing,
	},
	{ // ngx_http_v2_module.c, ngx_http_v3_module.c: neither protocol is spoken
		[]string{"http2", "http3"}, 0,
		func(_ *Request, v *VarValue, _ any) Rc { *v = VarNull; return OK },
	},
	{ // ngx_http_limit_conn_module.c, ngx_http_limit_req_module.c: nothing is limited
		[]string{"limit_conn_status", "limit_req_status"}, VarNoCacheable, missing,
	},
	{[]string{"uid_got", "uid_set"}, 0, missing}, // ngx_http_userid_filter_module.c: userid is off
	{
		[]string{"uid_reset"}, VarChangeable,
		func(_ *Request, v *VarValue, _ any) Rc { *v = VarNull; return OK },
	},
	{[]string{"msie", "modern_browser", "ancient_browser"}, VarChangeable, nil},
	{[]string{"date_local", "date_gmt"}, VarNoCacheable, nil},
	{[]string{"fastcgi_script_name", "fastcgi_path_info", "grpc_internal_trailers"}, VarNoCacheable | VarNoHash, nil},
}

func missing(_ *Request, v *VarValue, _ any) Rc { return v.Missing() }

// addAbsentVariables declares those that no module has declared.
func addAbsentVariables(cf *module.Conf) error {
	cmcf := coreMainOf(cf)
	for _, a := range absentVariables {
		for _, name := range a.names {
			if cmcf.varKeys[name] != nil {
				continue
			}
			v, err := AddVariable(cf, name, a.flags)
			if err != nil {
				return err
			}
			v.Get, v.refused = a.get, a.get == nil
		}
	}
	return nil
}

// checkVariables says what nginx would say of its table of variables.
func checkVariables(cf *module.Conf, cmcf *CoreMain) error {
	names := make([]string, 0, len(cmcf.VariablesHash))
	for name := range cmcf.VariablesHash {
		names = append(names, name)
	}
	return HashLimits{
		Name: "variables_hash", Max: cmcf.VariablesHashMaxSize, BucketSize: cmcf.VariablesHashBucketSize,
		Unused: len(cmcf.varKeys) - len(names),
	}.Check(cf, names)
}
