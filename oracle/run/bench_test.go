package run

import (
	"context"
	"fmt"
	"testing"

	"nginxoracle/oracle/casefile"
)

const benchConf = `events {}
http {
    access_log off;
    server {
        listen 127.0.0.1:8080;
        location / { return 200 "ok\n"; }
        location /p/ { proxy_pass http://127.0.0.1:9001; }
    }
}
`

// BenchmarkExchanges is the rate at which one client thread and one target get
// through requests: on one connection, on a connection each, and through an origin.
func BenchmarkExchanges(b *testing.B) {
	for _, bb := range []struct {
		name string
		text string // of each client
		path string
	}{{"keptalive", "", "/"}, {"connection each", "close\n", "/"}, {"proxied", "", "/p/"}} {
		b.Run(bb.name, func(b *testing.B) {
			ctx := context.Background()
			c, err := casefile.Parse("bench", []byte("-- nginx.conf --\n"+benchConf+
				"-- origin 127.0.0.1:9001 --\nrecv request\nsend \"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok\"\nclose\n"+
				"-- client 1 --\nsend \"GET "+bb.path+" HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n\"\nrecv response\n"+bb.text))
			if err != nil {
				b.Fatal(err)
			}
			cell := open(b)
			r, err := Boot(ctx, cell, c, Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Abandon()
			one := c.Sections[0]
			if bb.text == "" {
				// At most 1000 requests a connection (keepalive_requests).
				steps := one.Steps
				one.Steps = nil
				for range min(b.N, 900) {
					one.Steps = append(one.Steps, steps...)
				}
			}
			b.ResetTimer()
			for done := 0; done < b.N; done += len(one.Steps) / 2 {
				if err := r.Sections(ctx, []casefile.Section{one}); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "exchanges/s")
			o, err := r.Finish(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if n := len(o.Clients[0].Marks); n == 0 {
				b.Fatal(fmt.Errorf("no exchange took place: %+v", o.Clients[0]))
			}
		})
	}
}
