// Command faults proves that a campaign survives what can happen to it: it runs one against a proxy
// that was spoiled on purpose and kills the oracle, an agent, a server's master or a worker at
// random moments. No finding may be lost or filed twice, nothing may be left running or lying
// about, and the campaign must go on. `make faults KILLS=50 SEED=1`.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"nginxoracle/oracle/count"
)

func main() {
	kills := flag.Int("kills", 50, "how many processes to kill")
	seed := flag.Uint64("seed", 1, "seed of the campaign, of the victims and of the moments")
	cell := flag.String("cell", "local", "kind of cell (container, or local)")
	keep := flag.Bool("keep", false, "keep the campaign's folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kills, *seed, *cell, *keep); err != nil {
		fmt.Fprintf(os.Stderr, "faults: %v\nagain: go run ./tools/faults -kills %d -seed %d\n", err, *kills, *seed)
		os.Exit(1)
	}
}

// The spoiled texts: as long as what they replace, so that the program stays one. Each
// makes a difference of its own that comes again in every run.
var spoiled = [][2]string{
	{"404 Not Found", "404 Not Fount"},
	{"405 Not Allowed", "405 Not Alloved"},
	{"400 Bad Request", "400 Bad Requesd"},
	{"301 Moved Permanently", "301 Moved Permanendly"},
}

// spoil writes a proxy that differs.
func spoil(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("%w (make build)", err)
	}
	for _, s := range spoiled {
		if !bytes.Contains(b, []byte(s[0])) {
			return fmt.Errorf("spoil %s: it has no text %q", from, s[0])
		}
		b = bytes.ReplaceAll(b, []byte(s[0]), []byte(s[1]))
	}
	return os.WriteFile(to, b, 0o755)
}

// lab is one campaign that is killed again and again.
type lab struct {
	dir, oracle, proxy, cell string
	seed                     uint64
	books                    books
	cmd                      *exec.Cmd
	said                     *bytes.Buffer // of the running oracle
	ended                    chan error
}

func run(ctx context.Context, kills int, seed uint64, cell string, keep bool) error {
	dir, err := os.MkdirTemp("", "faults-")
	if err != nil {
		return err
	}
	if keep {
		fmt.Println("faults: kept in", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // a cell's user must reach the program
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o777); err != nil {
		return err
	}
	l := &lab{dir: dir, cell: cell, seed: seed, proxy: filepath.Join(dir, "spoiled"), books: newBooks(dir)}
	if l.oracle, err = filepath.Abs("bin/oracle"); err != nil {
		return err
	}
	if err := spoil("bin/proxy", l.proxy); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, 0x6b696c6c))
	began := time.Now()
	if err := l.start("--duration", "0"); err != nil {
		return err
	}
	defer l.end()
	if err := l.underWay(ctx); err != nil {
		return err
	}
	hit := map[string]int{}
	deck := slices.Clone(victims)
	for n := 0; n < kills; n++ {
		if n%len(deck) == 0 {
			r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		kind, err := l.strike(ctx, r, deck[n%len(deck)])
		if err != nil {
			return fmt.Errorf("kill %d: %w", n+1, err)
		}
		hit[kind]++
		if err := l.books.look(); err != nil {
			return fmt.Errorf("kill %d (%s): %w", n+1, kind, err)
		}
	}
	l.end()
	if err := l.settle(ctx); err != nil {
		return err
	}
	fmt.Printf("faults: %d kills (%d oracle, %d agent, %d master, %d worker), %d differing cases seen, %d findings, none lost, none doubled, nothing left; %.0f s\n",
		kills, hit["oracle"], hit["agent"], hit["master"], hit["worker"], len(l.books.cases), len(l.books.findings), time.Since(began).Seconds())
	return nil
}

// start starts or resumes the campaign.
func (l *lab) start(more ...string) error {
	args := append([]string{"fuzz", "--dir", filepath.Join(l.dir, "campaign"), "--corpus", filepath.Join(l.dir, "corpus"), "--seed", fmt.Sprint(l.seed),
		"--candidate", l.proxy, "--cell", l.cell, "--jobs", "2", "--units", "6", "--wrong", "2", "--shrink", "2s"}, more...)
	l.said = new(bytes.Buffer)
	l.cmd = exec.Command(l.oracle, args...)
	l.cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(l.dir, "tmp"))
	l.cmd.Stdout, l.cmd.Stderr = l.said, l.said
	if err := l.cmd.Start(); err != nil {
		return err
	}
	l.ended = make(chan error, 1)
	go func(c *exec.Cmd, ended chan<- error) { ended <- c.Wait() }(l.cmd, l.ended)
	return nil
}

// end kills the oracle where it runs, and waits for it.
func (l *lab) end() {
	if l.cmd != nil {
		_ = l.cmd.Process.Kill() // fails only when it has ended
		<-l.ended
		l.cmd = nil
	}
}

// underWay waits until the campaign has something to lose: on a machine that is short of time, all kills
// might come before anything was compared.
func (l *lab) underWay(ctx context.Context) error {
	for end := time.Now().Add(2 * time.Minute); len(l.books.cases) == 0; {
		select {
		case err := <-l.ended:
			l.cmd = nil
			return fmt.Errorf("the campaign ended by itself: %v\n%s", err, tail(l.said))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("the campaign has found nothing in a proxy that was spoiled\n%s", tail(l.said))
		}
		if err := l.books.look(); err != nil {
			return err
		}
	}
	return nil
}

// victims is who is killed, dealt in a new order each time round: the oracle in two of five.
var victims = []string{"oracle", "agent", "oracle", "master", "worker"}

// strike kills one process of that kind at a random moment.
func (l *lab) strike(ctx context.Context, r *rand.Rand, kind string) (string, error) {
	wait := time.Duration(50+r.IntN(1200)) * time.Millisecond
	pick := r.Uint64()
	for deadline := time.Now().Add(time.Minute); ; wait = 3 * time.Millisecond {
		select {
		case err := <-l.ended:
			l.cmd = nil
			return kind, fmt.Errorf("the campaign ended by itself: %v\n%s", err, tail(l.said))
		case <-ctx.Done():
			return kind, ctx.Err()
		case <-time.After(wait):
		}
		all, err := processes()
		if err != nil {
			return kind, err
		}
		p, ok := l.victim(all, kind, pick)
		if !ok {
			if time.Now().After(deadline) {
				return kind, fmt.Errorf("there is no %s to kill\n%s", kind, tail(l.said))
			}
			continue
		}
		family := append(all.below(p.pid), p)
		for _, a := range l.agents(all, l.cmd.Process.Pid) {
			if kind == "oracle" {
				family = append(append(family, a), all.below(a.pid)...)
			}
		}
		oracle := l.cmd.Process.Pid
		if kind == "oracle" {
			l.end()
		} else if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return kind, err
		}
		if kind == "oracle" || kind == "agent" {
			if err := gone(family); err != nil {
				return kind, err
			}
		}
		if kind == "oracle" && l.cell == "container" {
			if err := containersGone(oracle); err != nil {
				return kind, err
			}
		}
		if kind == "oracle" {
			return kind, l.start("--duration", "0")
		}
		return kind, nil
	}
}

// victim chooses a process: an agent is the oracle's child, a master is an agent's, a worker a master's.
func (l *lab) victim(all table, kind string, pick uint64) (process, bool) {
	self := l.cmd.Process.Pid
	if kind == "oracle" {
		p, ok := all[self]
		return p, ok
	}
	list := l.agents(all, self)
	for range map[string]int{"agent": 0, "master": 1, "worker": 2}[kind] {
		var next []process
		for _, p := range list {
			next = append(next, all.children(p.pid)...)
		}
		list = next
	}
	if len(list) == 0 {
		return process{}, false
	}
	return list[pick%uint64(len(list))], true
}

// agents are the processes 1 of the oracle's cells: its children, or its containers'.
func (l *lab) agents(all table, oracle int) []process {
	if l.cell != "container" {
		return all.children(oracle)
	}
	var list []process
	for _, pid := range containers(oracle, "{{.State.Pid}}") {
		n, err := strconv.Atoi(pid)
		if p, ok := all[n]; err == nil && ok && n != 0 {
			list = append(list, p)
		}
	}
	return list
}

// containers are those that an oracle has made, in the form that docker inspect prints; none when
// they are just going.
func containers(oracle int, form string) []string {
	out, err := exec.Command("docker", "ps", "-aq", "--filter", fmt.Sprintf("label=nginx-oracle.pid=%d", oracle)).Output()
	ids := strings.Fields(string(out))
	if err != nil || len(ids) == 0 || form == "" {
		return ids
	}
	out, _ = exec.Command("docker", append([]string{"inspect", "-f", form}, ids...)...).Output()
	return strings.Fields(string(out))
}

func containersGone(oracle int) error {
	var left []string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if left = containers(oracle, ""); len(left) == 0 {
			return nil
		}
	}
	return fmt.Errorf("containers %s are left", strings.Join(left, " "))
}

// settle lets the campaign look at all that waits, and proves the result.
func (l *lab) settle(ctx context.Context) error {
	if err := l.start("--duration", "1ms", "--drain", "20m"); err != nil {
		return err
	}
	defer l.end()
	select {
	case err := <-l.ended:
		l.cmd = nil
		var e *exec.ExitError
		if !errors.As(err, &e) || e.ExitCode() != 1 {
			return fmt.Errorf("the last run ended with %v, want exit code 1: it has findings\n%s", err, tail(l.said))
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := l.books.close(); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(l.said))
	}
	// What was filed is real: every finding differs again.
	out, err := exec.CommandContext(ctx, l.oracle, "replay", "--candidate", l.proxy, "--cell", l.cell, filepath.Join(l.dir, "corpus")).CombinedOutput()
	var e *exec.ExitError
	want := fmt.Sprintf("%s: %d differ", count.Of(len(l.books.findings), "case"), len(l.books.findings))
	if !errors.As(err, &e) || e.ExitCode() != 1 || !bytes.Contains(out, []byte(want)) {
		return fmt.Errorf("replay of the findings: %v, want %q\n%s", err, want, tail(bytes.NewBuffer(out)))
	}
	return nil
}

// tail is the end of what a program said.
func tail(b io.Reader) string {
	text, err := io.ReadAll(b)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-3000):])
}
