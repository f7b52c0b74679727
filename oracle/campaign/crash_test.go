package campaign

import (
	"testing"
	"time"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/catalog"
	"nginxoracle/oracle/minimize"
)

// A unit that makes a worker crash is found among the others, which are compared without it.
func TestCrashIsOneUnits(t *testing.T) {
	for _, exit := range []bool{false, true} {
		crashIsOneUnits(t, &rigged{t: t, dir: t.TempDir(), bug: "no such directive", crash: " 6/0/2", exits: exit})
	}
}

func crashIsOneUnits(t *testing.T, r *rigged) {
	t.Helper()
	one := func(c *Config) {
		c.Seed, c.Feedback, c.Wrong, c.Jobs, c.Batches, c.Shrink = 6, false, 0, 1, 1, minimize.Budget{Attempts: 1}
	}
	sum := r.campaign(one)
	if sum.Crashers != 1 || sum.Company != 0 || sum.Unstable != 0 || sum.Batches != 1 || len(sum.Findings) != 1 {
		t.Fatalf("%d crashers, %d in company, %d unstable, %d batches, %d findings; want 1, 0, 0, 1, 1", sum.Crashers, sum.Company, sum.Unstable, sum.Batches, len(sum.Findings))
	}
	c, err := catalog.Open(r.config().Corpus)
	if err != nil {
		t.Fatal(err)
	}
	if seed := c.Entries[0].Get("seed"); seed != "6/0/2" {
		t.Errorf("found in unit %s, want 6/0/2", seed)
	}
}

// Only a whole minimum tells whether a case is a recorded divergence: one that looks like it has the time to come to its end.
func TestBudgetOfWhatLooksLikeADivergence(t *testing.T) {
	entry := func(status string) *catalog.Catalog {
		return &catalog.Catalog{Entries: []*catalog.Entry{{Case: &casefile.Case{Meta: []casefile.Field{
			{Key: "status", Value: status}, {Key: "signature", Value: "process: crash [location]"}}}}}}
	}
	for _, x := range []struct {
		status, core string
		want         time.Duration
	}{
		{catalog.Divergence, "process: crash", 40 * time.Second}, {catalog.Divergence, "process: crash of another", 10 * time.Second},
		{catalog.Divergence, "process", 10 * time.Second}, {catalog.Fixed, "process: crash", 10 * time.Second},
	} {
		c := &Campaign{cfg: Config{Shrink: minimize.Budget{Time: 10 * time.Second}}, catalog: entry(x.status)}
		if got := c.budget(&pendingCase{Core: x.core}).Time; got != x.want {
			t.Errorf("%s, %s: %v, want %v", x.status, x.core, got, x.want)
		}
	}
}
