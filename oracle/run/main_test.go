package run

import (
	"context"
	"os"
	"testing"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/reference"
)

func TestMain(m *testing.M) {
	engine.Agent()
	os.Exit(m.Run())
}

// open opens a local cell with the reference; without one the test is skipped, and says why.
func open(t testing.TB) engine.Cell {
	t.Helper()
	ctx := context.Background()
	pair, err := reference.Resolve(ctx, "nginx", "nginx", engine.Local, nil)
	if err != nil {
		t.Skipf("no reference nginx: %v", err)
	}
	cell, err := engine.Open(ctx, pair.Reference)
	if err != nil {
		t.Skipf("no local cell here: %v", err)
	}
	t.Cleanup(func() {
		if err := cell.Close(); err != nil {
			t.Errorf("close the cell: %v", err)
		}
	})
	return cell
}
