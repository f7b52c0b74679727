// Package empty_gif answers with a transparent pixel
// (nginx: src/http/modules/ngx_http_empty_gif_module.c).
package empty_gif

import (
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
)

// Module is ngx_http_empty_gif_module.
var Module = &http.Module{
	Name: "ngx_http_empty_gif_module",
	Directives: []module.Directive{{
		Name: "empty_gif", Where: module.HTTPLoc, Args: module.NoArgs,
		Set: func(cf *module.Conf, _ *module.Directive, _ any) error {
			http.SetHandler(cf, handler)
			return nil
		},
	}},
}

// gif is one transparent pixel, in the 43 bytes that the format needs at least.
var gif = []byte("GIF89a" +
	"\x01\x00\x01\x00\x80\x01\x00" + // screen: 1 by 1, a table of two colours
	"\x00\x00\x00\xff\xff\xff" +
	"!\xf9\x04\x01\x00\x00\x01\x00" + // colour 1 is transparent
	",\x00\x00\x00\x00\x01\x00\x01\x00\x00" +
	"\x02\x02L\x01\x00;")

// modified is Mon, 28 Sep 1970 06:00:00 GMT.
const modified = 23349600

func handler(r *http.Request) http.Rc {
	if r.Method&(http.GET|http.HEAD) == 0 {
		return 405
	}
	r.HeadersOut.LastModifiedTime = modified
	return r.SendResponse(200, []byte("image/gif"), gif)
}
