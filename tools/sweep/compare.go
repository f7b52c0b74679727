package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/reference"
	"nginxoracle/oracle/triage"
)

// chunk is how many configurations lie in one work tree.
const chunk = 50

// compareAll opens a pair of cells and compares what both sides say of all that comes.
func compareAll(ctx context.Context, pair reference.Pair, work <-chan []conf, r *result) error {
	ref, err := engine.Open(ctx, pair.Reference)
	if err != nil {
		return err
	}
	defer ref.Close()
	cand, err := engine.Open(ctx, pair.Candidate)
	if err != nil {
		return err
	}
	defer cand.Close()
	for list := range work {
		var refs, cands []*observe.Observation
		done := make(chan error, 1)
		go func() {
			var err error
			cands, err = testAll(ctx, cand, list)
			done <- err
		}()
		refs, err = testAll(ctx, ref, list)
		if err = errors.Join(err, <-done); err != nil {
			return err
		}
		r.compare(list, refs, cands)
	}
	return nil
}

func (r *result) compare(list []conf, refs, cands []*observe.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range list {
		r.swept++
		if refs[i].Test.Code == 0 {
			r.loaded++
		}
		if strings.Contains(cands[i].Test.Text, " is not supported") && !strings.Contains(refs[i].Test.Text, "not supported") {
			r.refused++
			continue
		}
		switch d := diff.Compare(refs[i], cands[i]); d.Verdict {
		case diff.Agree:
		case diff.Refused:
			r.refused++
		case diff.Differ:
			m := d.Mismatches[len(d.Mismatches)-1] // what is said tells more than the exit code
			r.add(c, fmt.Sprintf("%s | %s", shape(m.Ref, m.At), shape(m.Cand, m.At)), m)
		default:
			r.broke++
		}
	}
}

// shape is the shape of the line in which a text differs.
func shape(b []byte, at int) string {
	line, _, _ := strings.Cut(string(near(b, at)), "\n")
	if line == "" {
		return "nothing"
	}
	return triage.Shape(line)
}

// besides lies in the work tree beside each configuration.
var besides = []casefile.File{
	{Path: "logs", Dir: true},
	{Path: "html", Dir: true},
	{Path: "conf/one.conf", Data: []byte("# nothing\n")},
	{Path: "conf/bad.conf", Data: []byte("server_tokens;\n")},
	{Path: "conf/open.conf", Data: []byte("types {\n")},
	{Path: "html/index.html", Data: []byte("x\n")},
}

// testAll runs -t on every configuration. Only what is said is compared: what -t makes in the work tree stays for
// the configurations behind, on both sides alike.
func testAll(ctx context.Context, cell engine.Cell, list []conf) ([]*observe.Observation, error) {
	files := make([]engine.File, 0, len(list)+len(besides))
	for _, f := range besides {
		files = append(files, engine.File{Path: f.Path, Data: f.Data, Dir: f.Dir})
	}
	for i, c := range list {
		files = append(files, engine.File{Path: name(i), Data: []byte(c.text)})
	}
	if err := cell.Reset(ctx, files); err != nil {
		return nil, err
	}
	out := make([]*observe.Observation, len(list))
	for i := range list {
		res, err := cell.Command(ctx, "-p", "/cell/", "-c", "/cell/"+name(i), "-e", "/cell/logs/error.log", "-g", "daemon off;", "-t")
		if err != nil {
			return nil, fmt.Errorf("%w, with %s", err, list[i].own)
		}
		out[i] = &observe.Observation{Info: cell.Info(), Test: observe.Command{Code: res.Exit.Code, Signal: res.Exit.Signal, Text: string(res.Stderr), Stdout: string(res.Stdout)}}
		if !res.Exit.Exited {
			out[i].Test.Text += "\n(did not end, was killed)"
		}
	}
	return out, nil
}

func name(i int) string { return fmt.Sprintf("w%02d.conf", i) }
