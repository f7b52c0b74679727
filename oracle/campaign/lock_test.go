package campaign

import (
	"context"
	"strings"
	"testing"
)

// Two campaigns would overwrite each other's state: the second one is turned away until the first has ended.
func TestOneCampaignAFolder(t *testing.T) {
	cfg := (&rigged{t: t, dir: t.TempDir(), bug: "none"}).config()
	cfg.Batches = 1
	first, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "another campaign runs in this folder") {
		t.Errorf("a second campaign: got %v, want it turned away", err)
	}
	first.Run(context.Background())
	if _, err := New(cfg); err != nil {
		t.Errorf("after the first: %v", err)
	}
}

// A campaign goes on with the targets that it began with; a state of before they were written down takes any.
func TestOnePairOfTargetsAFolder(t *testing.T) {
	cfg := (&rigged{t: t, dir: t.TempDir(), bug: "none"}).config()
	cfg.Batches = 1
	for _, step := range []struct {
		targets Targets
		want    string
	}{
		{Targets{}, ""},
		{Targets{Reference: "nginx", Candidate: "proxy"}, ""},
		{Targets{Reference: "nginx", Candidate: "nginx:1.22"}, "compares nginx with proxy, not nginx with nginx:1.22: give another --dir, or go on with --reference nginx --candidate proxy"},
		{Targets{Reference: "nginx:1.22", Candidate: "proxy"}, "compares nginx with proxy, not nginx:1.22 with proxy"},
		{Targets{Reference: "nginx", Candidate: "proxy", Self: true}, "compares nginx with proxy, not nginx with itself"},
		{Targets{Reference: "nginx", Candidate: "proxy"}, ""},
	} {
		cfg.Targets = step.targets
		c, err := New(cfg)
		switch {
		case step.want == "" && err != nil:
			t.Errorf("%v: %v", step.targets, err)
		case step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)):
			t.Errorf("%v: got %v, want %s", step.targets, err, step.want)
		case err == nil:
			c.Run(context.Background())
		}
	}
}
