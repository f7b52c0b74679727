package campaign

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/observe"
	"nginxoracle/oracle/run"
)

// A case whose triage does not come to an end is given back when the campaign's time is over: it waits,
// it is not lost, and the campaign does not wait for it.
func TestTriageIsCutShort(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: busiest(t)}
	sum := r.campaign(func(c *Config) {
		c.Batches, c.Jobs, c.Wrong, c.Grace = 1, 1, 0, time.Second // the batch itself has to end by then
		c.Drain, c.Shrink.Time = 20*time.Millisecond, 20*time.Millisecond
		c.Run = func(ctx context.Context, cell engine.Cell, cs *casefile.Case, opt run.Options) (*observe.Observation, error) {
			if opt.Lane == nil { // triage runs a case by itself
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return r.run(ctx, cell, cs, opt)
		}
	})
	if sum.Code != exit.Differ || len(sum.Waiting) == 0 || sum.RigFailed != 0 {
		t.Fatalf("code %v (%s), %d waiting, %d rig failures", sum.Code, sum.Why, len(sum.Waiting), sum.RigFailed)
	}
	files, err := filepath.Glob(filepath.Join(r.dir, "state", "pending", "*.txtar"))
	if err != nil || len(files) != len(sum.Waiting) {
		t.Errorf("%d files wait, %v; the summary says %d", len(files), err, len(sum.Waiting))
	}
}

// A batch that does not end in time gave no verdict.
func TestBatchIsCutShort(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: "none"}
	sum := r.campaign(func(c *Config) {
		c.Batches, c.Jobs, c.Grace, c.Drain = 1, 1, 20*time.Millisecond, 0
		c.Run = func(ctx context.Context, _ engine.Cell, _ *casefile.Case, _ run.Options) (*observe.Observation, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	if sum.Code != exit.Rig || !strings.Contains(sum.LastRig, "batch 0 was cut short") {
		t.Errorf("code %v (%s), last rig failure %q", sum.Code, sum.Why, sum.LastRig)
	}
}

// A job that obeys nobody, as one that compares for ever, is left behind: the campaign ends without a
// verdict and says where the job was.
func TestStuckJobIsLeftBehind(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: "none"}
	release := make(chan struct{})
	defer close(release)
	sum := r.campaign(func(c *Config) {
		c.Batches, c.Jobs, c.Grace, c.Drain = 1, 1, 20*time.Millisecond, 0
		c.Compare = func(*observe.Observation, *observe.Observation) diff.Result {
			<-release
			runtime.Goexit() // it touches nothing any more
			panic("unreachable")
		}
	})
	if sum.Code != exit.Rig || !strings.Contains(sum.Why, "jobs do not end (batch-0/") {
		t.Errorf("code %v: %s", sum.Code, sum.Why)
	}
	text, err := os.ReadFile(filepath.Join(r.dir, "state", "stuck"))
	if err != nil || !strings.Contains(string(text), "TestStuckJobIsLeftBehind.func") {
		t.Errorf("%v: the stacks do not show where the job is:\n%.2000s", err, text)
	}
}

// A process that has become too large ends its campaign instead of being ended by the kernel.
func TestTooLargeEndsTheCampaign(t *testing.T) {
	r := &rigged{t: t, dir: t.TempDir(), bug: "none"}
	sum := r.campaign(func(c *Config) { c.Batches, c.MemoryMost = 0, 1 })
	if sum.Code != exit.Rig || !strings.Contains(sum.Why, "uses more than") {
		t.Errorf("code %v: %s", sum.Code, sum.Why)
	}
}

// Whoever looks at a campaign sees what its jobs are at.
func TestProgressSaysWhatIsDone(t *testing.T) {
	s := Snapshot{Doing: []string{"batch-7/3s/2runs", "triage-abc/12s/40runs"}}
	if line := s.Line(); !strings.HasSuffix(line, " doing=batch-7/3s/2runs,triage-abc/12s/40runs") {
		t.Error(line)
	}
}

// What a signal ends has no good verdict, however much agreed so far: what was not played is not known.
func TestInterruptedCampaignIsNoAgreement(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &rigged{t: t, dir: t.TempDir(), bug: "none"}
	cfg := r.config()
	cfg.Jobs, cfg.Wrong, cfg.Batches, cfg.Feedback = 1, 0, 1000, false
	cfg.Run = func(ctx context.Context, cell engine.Cell, cs *casefile.Case, opt run.Options) (*observe.Observation, error) {
		if r.runs.Load() > 4 {
			cancel()
		}
		return r.run(ctx, cell, cs, opt)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	sum, _ := c.Run(ctx)
	if sum.Code != exit.Rig || sum.Batches == 0 || !strings.Contains(sum.Why, "interrupted") {
		t.Errorf("code %v (%s) after %d batches, want %v and the word", sum.Code, sum.Why, sum.Batches, exit.Rig)
	}
}

// A campaign that a signal ends before anything was compared does not lay it to the rig.
func TestInterruptedAtOnce(t *testing.T) {
	c, err := New((&rigged{t: t, dir: t.TempDir(), bug: "none"}).config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	sum, err := c.Run(ctx)
	if err != nil || sum.Code != exit.Rig || sum.Why != "interrupted; so far: nothing compared" {
		t.Errorf("got code %d, %q, %v", sum.Code, sum.Why, err)
	}
}
