package bench

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cores are where the roles run.
type cores struct {
	server, client, origin int
	shared                 string // which roles share a core, and what that voids
	threads                string // which roles share a physical core
}

// pickCores gives the server, the client and the origin cores of their own as far as there are any, of different
// physical cores where that can be; the origin goes to the client's rather than beside the server.
func pickCores(allowed []int, siblings func(int) []int) (c cores, err error) {
	if len(allowed) < 2 {
		return c, fmt.Errorf("bench needs two cores: it may run on %d, and a client on the server's core measures itself", len(allowed))
	}
	beside := func(a, b int) bool { return slices.Contains(siblings(a), b) }
	pick := func(ok func(int) bool) (int, bool) {
		i := slices.IndexFunc(allowed, ok)
		return allowed[max(i, 0)], i >= 0
	}
	var found bool
	c.server = allowed[0]
	if c.client, found = pick(func(n int) bool { return n != c.server && !beside(c.server, n) }); !found {
		c.client = allowed[1]
		c.threads = fmt.Sprintf("server and client are threads of one physical core (%d and %d): each takes from the other, and throughput is a lower bound", c.server, c.client)
	}
	free := func(n int) bool { return n != c.server && n != c.client && !beside(c.server, n) }
	if c.origin, found = pick(func(n int) bool { return free(n) && !beside(c.client, n) }); found {
		return c, nil
	}
	if c.origin, found = pick(free); found {
		c.shared = fmt.Sprintf("client and origin are threads of one physical core (%d and %d): throughput of the proxy workloads is bounded by both", c.client, c.origin)
		return c, nil
	}
	c.origin = c.client
	c.shared = fmt.Sprintf("client and origin share core %d: throughput of the proxy workloads is bounded by both", c.client)
	return c, nil
}

// allowedCores are the cores that this process may run on.
func allowedCores() (list []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			list = append(list, i)
		}
	}
	return list, nil
}

// siblings are the threads of a core's physical core, itself among them; none where the kernel does not say.
func siblings(core int) (list []int) {
	b, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", core))
	if err != nil {
		return nil
	}
	return cpuList(string(b))
}

// cpuList reads the kernel's form of a list, as in "0-1,4".
func cpuList(s string) (list []int) {
	for _, part := range strings.Split(strings.TrimSpace(s), ",") {
		from, to, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		b := a
		if ranged {
			if b, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		for n := a; n <= b; n++ {
			list = append(list, n)
		}
	}
	return list
}

// pinSelf keeps every thread of this process, and what it starts from now on, on these cores.
func pinSelf(list ...int) error {
	var set unix.CPUSet
	for _, n := range list {
		set.Set(n)
	}
	for range 2 { // a thread that was made during the first round is there in the second
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(tid, &set); err != nil && err != unix.ESRCH {
				return fmt.Errorf("sched_setaffinity: %w", err)
			}
		}
	}
	return nil
}
