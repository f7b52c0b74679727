package elog

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
)

type lines []string

func (l *lines) WriteLine(b []byte) error { *l = append(*l, string(b)); return nil }

type ctx string

func (c ctx) AppendLog(b []byte) []byte { return append(b, c...) }

func TestEntry(t *testing.T) {
	var out, con lines
	list := &List{}
	Startup.On, Startup.W = true, &con
	defer func() { Startup.On = false }()
	list.Insert(&Target{Level: Error, W: &out})
	l := &Log{Sink: list, Conn: 7, Action: "sending", Ctx: ctx(", client: x")}
	l.Err(Error, syscall.ENOENT, "open() %q failed", "/a")
	l.Err(Warn, nil, "not here")
	want := regexp.MustCompile(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[error\] \d+#\d+: \*7 open\(\) "/a" failed \(2: No such file or directory\) while sending, client: x\n$`)
	if len(out) != 1 || !want.MatchString(out[0]) {
		t.Fatalf("got %q", out)
	}
	if len(con) != 1 || !strings.HasPrefix(con[0], `nginx: [error] *7 open() "/a" failed`) {
		t.Fatalf("console got %q", con)
	}
}

func TestLongEntryKeepsItsErrno(t *testing.T) {
	var out lines
	list := &List{}
	list.Insert(&Target{Level: Error, W: &out})
	l := &Log{Sink: list}
	l.Err(Error, syscall.EACCES, "%s", strings.Repeat("x", 5000))
	if !strings.HasSuffix(out[0], "x... (13: Permission denied)\n") || len(out[0]) > MaxEntry {
		t.Errorf("%d bytes, ends %q", len(out[0]), out[0][len(out[0])-60:])
	}
	l.Err(Error, nil, "%s", strings.Repeat("x", 5000))
	if len(out[1]) != MaxEntry {
		t.Errorf("%d bytes, want %d", len(out[1]), MaxEntry)
	}
}

func TestTargetsTakeTheirLevels(t *testing.T) {
	var a, b lines
	list := &List{}
	list.Insert(&Target{Level: Crit, W: &a})
	list.Insert(&Target{Level: Notice, W: &b})
	l := &Log{Sink: list}
	l.Err(Warn, nil, "w")
	l.Err(Crit, nil, "c")
	l.Err(Info, nil, "i")
	if len(a) != 1 || len(b) != 2 {
		t.Errorf("crit target got %q, notice target got %q", a, b)
	}
}
