package engine_test

import (
	"context"
	"testing"

	"golang.org/x/sys/unix"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/reference"
)

// BenchmarkCell shows what the parts of a run cost in a local cell, for both targets.
func BenchmarkCell(b *testing.B) {
	ctx := context.Background()
	p, err := reference.Resolve(ctx, "nginx", "proxy", engine.Local, nil)
	if err != nil {
		b.Skip(err)
	}
	for _, o := range []engine.Options{p.Reference, p.Candidate} {
		c, err := engine.Open(ctx, o)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		conf := []byte("events {} http { access_log off; server { listen 127.0.0.1:8080; return 204; } }")
		files := []engine.File{{Path: "nginx.conf", Data: conf}}
		boot := func() engine.Server {
			if err := c.Reset(ctx, files); err != nil {
				b.Fatal(err)
			}
			s, err := c.Start(ctx, []string{"127.0.0.1:8080"}, serve...)
			if err != nil {
				b.Fatal(err)
			}
			return s
		}
		end := func(s engine.Server) {
			if _, _, err := s.Stop(ctx); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(o.Target.Name+"/open", func(b *testing.B) {
			for b.Loop() {
				c, err := engine.Open(ctx, o)
				if err != nil {
					b.Fatal(err)
				}
				c.Close()
			}
		})
		b.Run(o.Target.Name+"/boot", func(b *testing.B) {
			for b.Loop() {
				end(boot())
			}
		})
		s := boot()
		b.Run(o.Target.Name+"/probe", func(b *testing.B) {
			asleep := 0
			for b.Loop() {
				r, err := c.Probe(ctx)
				if err != nil {
					b.Fatal(err)
				}
				if r.Asleep {
					asleep++
				}
			}
			b.ReportMetric(float64(asleep)/float64(b.N), "asleep/op")
		})
		b.Run(o.Target.Name+"/dial", func(b *testing.B) {
			for b.Loop() {
				fds, err := c.Dial(ctx, "127.0.0.1:8080", 1)
				if err != nil {
					b.Fatal(err)
				}
				unix.Close(fds[0])
			}
		})
		end(s)
	}
}
