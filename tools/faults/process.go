package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// process is one running process; its start time tells it from a later one with the same number.
type process struct {
	pid, parent int
	start       string
	spaces      string // its pid namespace, "" where it cannot be seen
}

type table map[int]process

// processes reads /proc.
func processes() (table, error) {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	t := table{}
	for _, d := range list {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		p, err := readProcess(pid)
		if errors.Is(err, fs.ErrNotExist) || err != nil && strings.Contains(err.Error(), "no such process") {
			continue // it has just ended
		}
		if err != nil {
			return nil, err
		}
		t[pid] = p
	}
	return t, nil
}

func readProcess(pid int) (process, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	// The name, in brackets, may hold anything (proc_pid_stat(5)).
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(f) < 20 {
		return process{}, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	parent, err := strconv.Atoi(f[1])
	if err != nil {
		return process{}, err
	}
	p := process{pid: pid, parent: parent, start: f[19]}
	if link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)); err == nil {
		p.spaces = link
	}
	return p, nil
}

func (t table) children(pid int) (list []process) {
	for _, p := range t {
		if p.parent == pid {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b process) int { return a.pid - b.pid })
	return list
}

func (t table) below(pid int) (list []process) {
	for _, p := range t.children(pid) {
		list = append(append(list, p), t.below(p.pid)...)
	}
	return list
}

// gone waits until none of the processes is left, nor any in a namespace that they had made.
func gone(family []process) error {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return err
	}
	var left []string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		all, err := processes()
		if err != nil {
			return err
		}
		left = nil
		for _, p := range all {
			for _, f := range family {
				same := p.pid == f.pid && p.start == f.start
				if same || f.spaces != "" && f.spaces != own && p.spaces == f.spaces {
					left = append(left, fmt.Sprint(p.pid))
					break
				}
			}
		}
		if len(left) == 0 {
			return nil
		}
	}
	return fmt.Errorf("processes %s are left", strings.Join(left, " "))
}
