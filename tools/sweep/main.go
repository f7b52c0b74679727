// Command sweep compares what nginx and the proxy say of many small configurations, of which every one
// has a directive with odd arguments: values at the limits of its type and beyond them, words that are nearly its
// keywords, paths, addresses, variables and regexes of all forms, a directive twice or on two levels. Only -t is run.
//
//	go run ./tools/sweep                        all of the systematic part
//	go run ./tools/sweep -n 2000 -seed 7        a draw of it
//	go run ./tools/sweep -n 0 -random 5000      only combinations
//	go run ./tools/sweep -from proxy_http_version -to proxy_temp_path
//
// Run it from the repository's root, after make build.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"nginxoracle/fuzz/grammar"
	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/reference"
)

func main() {
	engine.Agent()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := sweep(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sweep:", err)
	}
	os.Exit(int(code))
}

func sweep(ctx context.Context, w io.Writer) (exit.Code, error) {
	p := plan{}
	flag.StringVar(&p.from, "from", "", "first directive, by name")
	flag.StringVar(&p.to, "to", "", "last directive, by name (\"\": to the end)")
	flag.IntVar(&p.n, "n", -1, "how many of the systematic configurations, drawn with the seed (-1: all)")
	flag.IntVar(&p.random, "random", 0, "combinations at random")
	flag.Uint64Var(&p.seed, "seed", 1, "seed of the draw and of the combinations")
	jobs := flag.Int("jobs", 2, "pairs of cells")
	duration := flag.Duration("duration", 0, "when to begin no more (0: never)")
	candidate := flag.String("candidate", "bin/proxy", "the candidate, as oracle's --candidate")
	keep := flag.String("keep", "", "folder for one case of each kind of difference")
	flag.Parse()
	if flag.NArg() > 0 || *jobs < 1 {
		return exit.Usage, fmt.Errorf("want no arguments, and -jobs from 1")
	}
	if strings.HasPrefix(*candidate, "bin/") {
		*candidate = "./" + *candidate
	}
	pair, err := reference.Resolve(ctx, "nginx", *candidate, "auto", func(s string) { fmt.Fprintln(os.Stderr, s) })
	if err != nil {
		return exit.Of(err), err
	}
	t, err := grammar.Load()
	if err != nil {
		return exit.Rig, err
	}
	if p.has, err = supported(ctx, pair.Candidate); err != nil {
		return exit.Rig, err
	}
	confs := p.configurations(t)
	fmt.Fprintf(w, "sweep: %d configurations, seed %d\n", len(confs), p.seed)

	began := time.Now()
	work := make(chan []conf)
	var r result
	var all sync.WaitGroup
	errs := make(chan error, *jobs)
	work2, cancel := context.WithCancel(ctx)
	defer cancel()
	for range *jobs {
		all.Go(func() {
			if err := compareAll(work2, pair, work, &r); err != nil {
				errs <- err
				cancel()
			}
		})
	}
deal:
	for list := range slices.Chunk(confs, chunk) {
		if *duration > 0 && time.Since(began) > *duration {
			break
		}
		select {
		case work <- list:
		case <-work2.Done():
			break deal
		}
	}
	close(work)
	all.Wait()
	r.print(w, time.Since(began))
	if *keep != "" {
		if err := r.save(*keep); err != nil {
			return exit.Rig, err
		}
	}
	select {
	case err := <-errs:
		if ctx.Err() == nil {
			return exit.Rig, err
		}
	default:
	}
	if len(r.kinds) > 0 {
		return exit.Differ, nil
	}
	return exit.Agree, nil
}

// supported asks the candidate which directives it has: name and module.
func supported(ctx context.Context, o engine.Options) (func(grammar.Directive) bool, error) {
	cell, err := engine.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer cell.Close()
	out, err := cell.Command(ctx, "--directives")
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(out.Stdout)) {
		name, _, _ := strings.Cut(line, "\t")
		names[name] = true
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s does not list its directives", o.Target.Name)
	}
	return func(d grammar.Directive) bool {
		return names[d.Name] && !strings.HasPrefix(d.Module, "ngx_stream") && !strings.HasPrefix(d.Module, "ngx_mail")
	}, nil
}

// kind is a difference of one shape.
type kind struct {
	count   int
	names   map[string]int // the directives that show it
	example conf
	what    diff.Mismatch
}

// result is what came of all configurations.
type result struct {
	mu                            sync.Mutex
	swept, loaded, refused, broke int
	kinds                         map[string]*kind
}

func (r *result) add(c conf, shape string, m diff.Mismatch) {
	if r.kinds == nil {
		r.kinds = map[string]*kind{}
	}
	k := r.kinds[shape]
	if k == nil {
		k = &kind{names: map[string]int{}, example: c, what: m}
		r.kinds[shape] = k
	}
	if len(c.text) < len(k.example.text) {
		k.example, k.what = c, m
	}
	k.count++
	k.names[c.about]++
}

func (r *result) print(w io.Writer, took time.Duration) {
	differ := 0
	for i, shape := range r.byCount() {
		k := r.kinds[shape]
		differ += k.count
		fmt.Fprintf(w, "\n%d: %d times, %s; %s\n", i+1, k.count, shape, most(k.names))
		fmt.Fprintf(w, "%s  %s\n    nginx %.300q\n    proxy %.300q\n", indent(k.example.own), k.what.Where, near(k.what.Ref, k.what.At), near(k.what.Cand, k.what.At))
	}
	fmt.Fprintf(w, "\nsweep: %d configurations in %.0f s, %.0f a second: %d load, %d refused as not supported, %d differ in %d kinds, %d without verdict\n",
		r.swept, took.Seconds(), float64(r.swept)/took.Seconds(), r.loaded, r.refused, differ, len(r.kinds), r.broke)
}

// near is a text from the line on in which it differs.
func near(b []byte, at int) []byte {
	at = min(at, len(b))
	for at > 0 && b[at-1] != '\n' {
		at--
	}
	return b[at:]
}

func (r *result) byCount() []string {
	return slices.SortedFunc(maps.Keys(r.kinds), func(a, b string) int {
		if d := r.kinds[b].count - r.kinds[a].count; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}

// most lists the names that come most often.
func most(names map[string]int) string {
	list := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		if d := names[b] - names[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var b strings.Builder
	for i, n := range list {
		if i == 6 {
			fmt.Fprintf(&b, " and %d more", len(list)-i)
			break
		}
		fmt.Fprintf(&b, " %s×%d", n, names[n])
	}
	return strings.TrimSpace(b.String())
}

// save writes one case of each kind.
func (r *result) save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i, shape := range r.byCount() {
		k := r.kinds[shape]
		c := &casefile.Case{Title: "sweep: " + k.example.about, Files: slices.Concat([]casefile.File{{Path: "nginx.conf", Data: []byte(k.example.text)}}, besides)}
		if err := os.WriteFile(fmt.Sprintf("%s/%03d.txtar", dir, i+1), c.Print(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func indent(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		fmt.Fprintf(&b, "    %.300s\n", strings.TrimSuffix(line, "\n"))
	}
	return b.String()
}
