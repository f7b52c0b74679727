package http_test

import (
	"strings"
	"testing"

	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/modules/core"
)

// composeModule makes bodies of texts and subrequests: "compose 'a' /x 'b';" and
// "ask /auth;", which waits for a subrequest whose answer stays in memory.
var composeModule = &http.Module{Name: "compose"}

func init() {
	composeModule.Directives = []module.Directive{
		{Name: "compose", Where: module.HTTPLoc, Args: module.OneMore, Level: module.NoConf, Set: func(cf *module.Conf, _ *module.Directive, _ any) error {
			parts := append([]string(nil), cf.Args[1:]...)
			http.ConfLoc(cf, core.Module).(*http.CoreLoc).Handler = func(r *http.Request) http.Rc { return compose(r, parts) }
			return nil
		}},
		{Name: "ask", Where: module.HTTPLoc, Args: module.Take1, Level: module.NoConf, Set: func(cf *module.Conf, _ *module.Directive, _ any) error {
			uri := cf.Args[1]
			http.ConfLoc(cf, core.Module).(*http.CoreLoc).Handler = func(r *http.Request) http.Rc { return ask(r, uri) }
			return nil
		}},
		{Name: "background", Where: module.HTTPLoc, Args: module.Take1, Level: module.NoConf, Set: func(cf *module.Conf, _ *module.Directive, _ any) error {
			uri := cf.Args[1]
			http.ConfLoc(cf, core.Module).(*http.CoreLoc).Handler = func(r *http.Request) http.Rc {
				sr, rc := r.Subrequest([]byte(uri), nil, nil, http.SubBackground)
				if rc != http.OK {
					return 500
				}
				sr.HeaderOnly = true // as mirror does: nobody is there to take the body
				return r.SendResponse(200, textPlain, []byte("front"))
			}
			return nil
		}},
	}
}

func compose(r *http.Request, parts []string) http.Rc {
	r.HeadersOut.Status = 200
	r.HeadersOut.ContentType = textPlain
	r.HeadersOut.ContentTypeLen = len(textPlain)
	if rc := r.SendHeader(); rc == http.Error || rc > http.OK || r.HeaderOnly {
		return rc
	}
	for _, p := range parts {
		if p[0] == '/' {
			if _, rc := r.Subrequest([]byte(p), nil, nil, 0); rc != http.OK {
				return http.Error
			}
			continue
		}
		b := r.NewBuf()
		b.Memory, b.Data, b.LastInChain = true, []byte(p), true
		if r.OutputFilter(r.NewChain(b)) == http.Error {
			return http.Error
		}
	}
	return r.SendSpecial(true, false)
}

// ask answers with the status and the body of a subrequest that stays in memory.
func ask(r *http.Request, uri string) http.Rc {
	type state struct{ sr *http.Request }
	st, _ := r.Ctx(composeModule).(*state)
	if st == nil {
		sr, rc := r.Subrequest([]byte(uri), nil, &http.PostSub{Handler: func(sr *http.Request, _ any, rc http.Rc) http.Rc {
			return rc
		}}, http.SubInMemory|http.SubWaited)
		if rc != http.OK {
			return 500
		}
		r.SetCtx(composeModule, &state{sr})
		r.Main.Count++
		r.WriteHandler = func(r *http.Request) {
			if r.Ctx(composeModule).(*state).sr.Done {
				r.Finalize(ask(r, uri))
			}
		}
		return http.Done
	}
	body := ""
	if st.sr.Out != nil {
		body = string(st.sr.Out.Buf.Data)
	}
	return r.SendResponse(200, textPlain, []byte("asked: "+body))
}

const composeServer = `server {
	listen 127.0.0.1:8080;
	location /a { answer 200 AA; }
	location /b { compose b1 /a b2; }
	location /page { compose 1 /a 2 /b 3 /none 4; }
	location /none { answer 404 x; }
	location /ask { ask /a; }
	location /loop { compose l /loop; }
	location /back { background /a; }
	location /only { compose /a /b; }
}`

func TestSubrequestsKeepTheirOrder(t *testing.T) {
	conf := prepare(t, composeServer)
	get := func(uri string) string { return "GET " + uri + " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" }
	for _, c := range []struct{ uri, want string }{
		{"/page", "1AA2b1AAb23<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n<center><h1>404 Not Found</h1></center>\r\n<hr><center>nginx/1.26.3</center>\r\n</body>\r\n</html>\r\n4"},
		{"/only", "AAb1AAb2"},
		{"/ask", "asked: AA"},
		{"/back", "front"},
		{"/loop", ""},
	} {
		for _, room := range []int{0, 3} {
			got := exchange(t, conf, room, []byte(get(c.uri)))
			_, body, _ := strings.Cut(got, "\r\n\r\n")
			if body != c.want {
				t.Errorf("%s, %d bytes at a time: got %q, want %q\n%s", c.uri, room, got, c.want, conf.mem)
			}
		}
	}
}

func TestSubrequestsInChunksOnAKeptConnection(t *testing.T) {
	conf := prepare(t, composeServer)
	in := "GET /page HTTP/1.1\r\nHost: a\r\n\r\nGET /ask HTTP/1.1\r\nHost: a\r\n\r\nGET /back HTTP/1.1\r\nHost: a\r\n\r\nGET /only HTTP/1.1\r\nHost: a\r\n\r\n"
	got := exchange(t, conf, 0, []byte(in))
	for _, want := range []string{
		"Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n",
		"\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n", "asked: AA", "front", "\r\n0\r\n\r\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want in it %q\n%s", got, want, conf.mem)
		}
	}
	if n := strings.Count(got, "HTTP/1.1 200 OK"); n != 4 {
		t.Errorf("%d answers, want 4: %q\n%s", n, got, conf.mem)
	}
	if strings.Contains(conf.mem.String(), "alert") {
		t.Errorf("alerts:\n%s", conf.mem)
	}
}
