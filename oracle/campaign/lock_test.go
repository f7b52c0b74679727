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
