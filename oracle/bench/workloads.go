package bench

import (
	"bytes"
	"fmt"
	"strings"
)

// Workloads are the rows, in the order in which they run.
func Workloads() []Workload {
	small := []byte("ok\n")
	mega := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	k64 := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	server := func(body string) string {
		return "access_log off;\nserver {\nlisten 127.0.0.1:{PORT};\nkeepalive_requests 1000000000;\nroot {ROOT};\n" + body + "\n}\n"
	}
	up := func(fill string) string {
		return "upstream o { server 127.0.0.1:{ORIGIN}; keepalive 64; keepalive_requests 1000000000; }\n" + server(fill)
	}
	kept := "location / { proxy_pass http://o; proxy_http_version 1.1; proxy_set_header Connection \"\"; }"
	return []Workload{
		{Name: "static-3b", What: "static file of 3 bytes, kept alive", Conf: server("sendfile on;"), Path: "/s", Body: small},
		{Name: "static-1m", What: "static file of 1 MiB, sendfile off, kept alive", Conf: server("sendfile off;"), Path: "/m", Body: mega},
		{Name: "static-1m-sendfile", What: "static file of 1 MiB, sendfile on, kept alive", Conf: server("sendfile on;"), Path: "/m", Body: mega},
		{Name: "return-200", What: "return 200 \"ok\\n\", kept alive", Conf: server("location / { return 200 \"ok\\n\"; }"), Path: "/", Body: small},
		{Name: "proxy-small", What: "reverse proxy to a kept-alive origin, body of 3 bytes", Conf: up(kept), Path: "/", Body: k64[:3], Origin: 3},
		{Name: "proxy-64k", What: "reverse proxy to a kept-alive origin, body of 64 KiB", Conf: up(kept), Path: "/", Body: k64, Origin: 64 << 10},
		{Name: "proxy-fresh", What: "reverse proxy, a new connection from the client and to the origin for each request, body of 3 bytes",
			Conf: server("location / { proxy_pass http://127.0.0.1:{ORIGIN}; }"), Path: "/", Body: k64[:3], Origin: 3, Fresh: true},
		{Name: "proxy-m1", What: "latency, one request at a time: reverse proxy to a kept-alive origin, body of 3 bytes", Kind: OneByOne,
			Conf: up(kept), Path: "/", Body: k64[:3], Origin: 3},
		routing(),
		{Name: "idle", What: "idle connections after one request each (return 200)", Kind: Idle, Conns: 9000,
			Conf: server("keepalive_timeout 1000s; location / { return 200 \"ok\\n\"; }"), Path: "/", Body: small},
		{Name: "reload", What: "return 200, a new connection each, while HUP is sent ten times", Kind: Reload, Fresh: true,
			Conf: server("location / { return 200 \"ok\\n\"; }"), Path: "/", Body: small},
		{Name: "startup", What: "-t of a configuration of 10,000 lines", Kind: Startup, Conf: large(), Path: "/", Body: small},
	}
}

// routing has 1,000 server names and 200 regex locations; the request asks for a name
// and a location in the middle of both.
func routing() Workload {
	var b strings.Builder
	b.WriteString("access_log off;\nserver_names_hash_max_size 4096;\nserver_names_hash_bucket_size 128;\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "server {\nlisten 127.0.0.1:{PORT};\nkeepalive_requests 1000000000;\nserver_name name-%d.example.test;\n", i)
		if i == 500 {
			for j := range 200 {
				fmt.Fprintf(&b, "location ~ ^/r%d/[a-z]+$ { return 200 \"r%d\\n\"; }\n", j, j)
			}
		}
		b.WriteString("}\n")
	}
	return Workload{Name: "routing", What: "1,000 server names, 200 regex locations, return 200, kept alive; the 100th regex matches",
		Conf: b.String(), Host: "name-500.example.test", Path: "/r100/abc", Body: []byte("r100\n")}
}

// large is, with what stands around every workload, a configuration of 10,000 lines: servers with locations.
func large() string {
	var b strings.Builder
	b.WriteString("access_log off;\nserver_names_hash_max_size 8192;\nserver_names_hash_bucket_size 128;\n")
	for i := range 500 {
		locations := 5
		if i == 0 {
			locations = 1
		}
		fmt.Fprintf(&b, "server {\nlisten 127.0.0.1:{PORT};\nserver_name s%d.example.test *.s%d.example.test;\nindex i%d;\n", i, i, i)
		for j := range locations {
			fmt.Fprintf(&b, "location /p%d/ {\nreturn 200 \"ok\\n\";\n}\n", j)
		}
		b.WriteString("}\n")
	}
	return b.String()
}
