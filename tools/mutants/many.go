package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// subtle are the kinds of mutants that leave most of a server working: what a campaign must look for.
var subtle = map[string]bool{"boundary": true, "off-by-one": true, "constant": true, "dropped-assignment": true}

// many builds one proxy with n small changes, each in a file of its own, and beside it the same with
// coverage counters: a server to measure the search on (oracle fuzz --compare-feedback).
func many(ctx context.Context, repo, into string, n int, seed uint64) error {
	files, err := sources(ctx, repo)
	if err != nil {
		return err
	}
	all, err := sites(repo, files)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay := map[string]string{}
	for _, m := range deal(all, 20*n, seed) {
		file := filepath.Join(repo, m.File)
		if len(overlay) == n {
			break
		}
		if overlay[file] != "" || !subtle[m.Kind] {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		changed := filepath.Join(dir, fmt.Sprintf("%d.go", len(overlay)))
		if err := os.WriteFile(changed, m.Apply(src), 0o644); err != nil {
			return err
		}
		overlay[file] = changed
		// Its package alone tells whether it compiles, and the server whether it starts at all.
		if buildMany(ctx, repo, dir, filepath.Join(dir, "try"), overlay) != nil || !loads(ctx, filepath.Join(dir, "try"), dir) {
			delete(overlay, file)
			continue
		}
		fmt.Printf("%2d %-20s %s:%d %.40q -> %.40q\n", len(overlay), m.Kind, m.File, m.Line, m.Old, m.New)
	}
	if len(overlay) < n {
		return fmt.Errorf("only %d of %d changes could be made", len(overlay), n)
	}
	if err := buildMany(ctx, repo, dir, into, overlay); err != nil {
		return err
	}
	return buildMany(ctx, repo, dir, into+"-cover", overlay, "-cover", "-covermode=set", "-coverpkg=nginxoracle/proxy/...,nginxoracle/cmd/proxy")
}

func buildMany(ctx context.Context, repo, dir, out string, overlay map[string]string, flags ...string) error {
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	args := append([]string{"build", "-trimpath", "-pgo=off", "-overlay", file, "-o", out}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/proxy")...)
	cmd.Dir = repo
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("go build: %w", err), errors.New(string(said)))
	}
	return nil
}

// loads tells whether a proxy still takes the plainest configuration.
func loads(ctx context.Context, binary, dir string) bool {
	conf := filepath.Join(dir, "nginx.conf")
	text := "events { } http { access_log off; server { listen 127.0.0.1:8080; location /a { return 200; } } }\n"
	if os.WriteFile(conf, []byte(text), 0o644) != nil {
		return false
	}
	return exec.CommandContext(ctx, binary, "-t", "-p", dir+"/", "-c", conf, "-e", "stderr", "-g", "pid "+dir+"/pid;").Run() == nil
}
