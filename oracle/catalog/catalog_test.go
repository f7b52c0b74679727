package catalog

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nginxoracle/oracle/casefile"
	"nginxoracle/oracle/diff"
)

func sample(t *testing.T) *casefile.Case {
	t.Helper()
	c, err := casefile.Parse("x", []byte("# t\n-- nginx.conf --\nevents {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func setMeta(t *testing.T, e *Entry, kv ...string) {
	t.Helper()
	for i := 0; i < len(kv); i += 2 {
		set := false
		for j := range e.Case.Meta {
			if e.Case.Meta[j].Key == kv[i] {
				e.Case.Meta[j].Value, set = kv[i+1], true
			}
		}
		if !set {
			e.Case.Meta = append(e.Case.Meta, casefile.Field{Key: kv[i], Value: kv[i+1]})
		}
	}
	if err := WriteFile(e.Path, e.Case.Print()); err != nil {
		t.Fatal(err)
	}
}

func TestAddNumbersAndReopens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "corpus")
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, slug := range []string{"one", "two"} {
		if _, err := c.Add(Fresh{Signature: "s " + slug, Slug: slug, Title: slug, Seed: "1/2/3", Case: sample(t)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".tmp-left"), []byte("half a fi"), 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Entries) != 2 || again.Entries[1].ID != "F-0002" || again.Find("s two") == nil || again.Find("s three") != nil {
		t.Fatalf("entries after reopening: %+v", again.Entries)
	}
	if base := filepath.Base(again.Entries[0].Path); base != "F-0001-one.txtar" {
		t.Errorf("file name %s", base)
	}
}

// Two campaigns that file side by side give no number twice, and a corpus in which two files have one is wrong.
func TestNumbersAreGivenOnce(t *testing.T) {
	dir := t.TempDir()
	var both [2]*Catalog
	for i := range both {
		c, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		both[i] = c
	}
	for i, slug := range []string{"a", "b"} {
		if _, err := both[i].Add(Fresh{Signature: slug, Slug: slug, Title: slug, Case: sample(t)}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Open(dir)
	if err != nil || len(c.Entries) != 2 || c.Entries[1].ID != "F-0002" {
		t.Fatalf("after two campaigns: %+v, %v", c, err)
	}
	text, err := os.ReadFile(c.Entries[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "F-0001-again.txtar"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "F-0001-a.txtar and ") || !strings.Contains(err.Error(), "have one number") {
		t.Errorf("two files of one number: got %v", err)
	}
}

// A case in the corpus that no check would look at is named.
func TestOpenNamesStrays(t *testing.T) {
	for _, name := range []string{"F-1-x.txtar", "F-0001-X.txtar", "f-0001-x.txtar", "F-0001.txtar", "F-99999999999999999999-x.txtar", "mine.txtar"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("-- nginx.conf --\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), name+": want a name such as") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Asking whether files can be made leaves nothing behind, and says why they cannot.
func TestCanWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := CanWrite(filepath.Join(dir, "a", "b", "c")); err != nil {
		t.Error(err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("left: %v, %v", list, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{filepath.Join(file, "x"): "not a directory", dir: "is a folder", "/dev/full": "is a device"} {
		if err := CanWrite(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

func TestOpenRefusesWrongEntries(t *testing.T) {
	for name, meta := range map[string]string{
		"no status":         "finding: F-0001\nsignature: s\n",
		"another number":    "finding: F-0002\nstatus: new\nsignature: s\n",
		"no signature":      "finding: F-0001\nstatus: new\n",
		"no reason":         "finding: F-0001\nstatus: divergence\nsignature: s\ndecision: D-1\n",
		"no such life":      "finding: F-0001\nstatus: wontfix\nsignature: s\n",
		"no nginx.conf":     "",
		"half a build":      "finding: F-0001\nstatus: divergence\nsignature: s\nreason: r\ndecision: 4\nbuild: 3f80\n",
		"divergence, whole": "finding: F-0001\nstatus: divergence\nsignature: s\nreason: r\ndecision: 4\nbuild: 3f804ae7dda3\n",
	} {
		dir := t.TempDir()
		text := "# t\n" + meta
		if meta != "" {
			text += "-- nginx.conf --\nevents {}\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "F-0001-x.txtar"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir)
		if want := name != "divergence, whole"; (err != nil) != want {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestCheckTellsTheFourWays(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(filepath.Join(dir, "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	add := func(slug string, kv ...string) {
		e, err := c.Add(Fresh{Signature: slug, Slug: slug, Title: slug, Case: sample(t)})
		if err != nil {
			t.Fatal(err)
		}
		setMeta(t, e, kv...)
	}
	div := []string{"status", "divergence", "reason", "r", "decision", "1"}
	add("fixed-agrees", "status", "fixed")
	add("fixed-differs", "status", "fixed")
	add("div-as-recorded", div...)
	add("div-agrees", div...)
	add("div-otherwise", div...)
	add("div-elsewhere", append(div, "build", "3f804ae7dda3")...)
	add("left")
	add("fixed-wavers", "status", "fixed")
	add("fixed-no-verdict", "status", "fixed")
	seen := map[string]Judged{
		"fixed-agrees":     {Verdict: diff.Agree},
		"fixed-differs":    {Verdict: diff.Differ, Signature: "x"},
		"div-as-recorded":  {Verdict: diff.Differ, Signature: "div-as-recorded"},
		"div-agrees":       {Verdict: diff.Agree},
		"div-elsewhere":    {Elsewhere: true},
		"div-otherwise":    {Verdict: diff.Differ, Signature: "another"},
		"fixed-wavers":     {Verdict: diff.Unstable},
		"fixed-no-verdict": {},
	}
	page := filepath.Join(dir, "FINDINGS.md")
	got := map[string]Kind{}
	for _, k := range c.Check(context.Background(), page, dir, func(_ context.Context, e *Entry) Judged { return seen[e.Signature()] }) {
		name := "page"
		if k.Entry != nil {
			name = k.Entry.Signature()
		}
		got[name] = k.Kind
	}
	want := map[string]Kind{"page": Stale, "fixed-differs": Differs, "div-agrees": Stale, "div-otherwise": Stale, "div-elsewhere": Elsewhere, "left": Differs, "fixed-wavers": Wavering, "fixed-no-verdict": Broken}
	for name, k := range want {
		if got[name] != k {
			t.Errorf("%s: %v, want %v", name, got[name], k)
		}
	}
	if len(got) != len(want) {
		t.Errorf("complaints: %v", got)
	}
	if err := WriteFile(page, c.Page(dir)); err != nil {
		t.Fatal(err)
	}
	for _, k := range c.Check(context.Background(), page, dir, func(_ context.Context, e *Entry) Judged { return seen[e.Signature()] }) {
		if k.Entry == nil {
			t.Errorf("a fresh page is complained of: %s", k.Text)
		}
	}
	if p := string(c.Page(dir)); !strings.Contains(p, "[F-0003](corpus/F-0003-div-as-recorded.txtar)") || !strings.Contains(p, "why it stays: r") {
		t.Errorf("page:\n%s", p)
	}
}

// What a killed writer left goes; what a living one is writing, and the cases, stay.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".tmp-999999999-1", ".tmp-1-2", "F-0001-x.txtar"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 2 || list[0].Name() != ".tmp-1-2" || list[1].Name() != "F-0001-x.txtar" {
		t.Errorf("left %v, %v, want process 1's file and the case", list, err)
	}
	if err := Sweep(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
}
