package procfs

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor/shell/poll"
)

// KillAll kills the processes that find returns until it returns none. If that takes too long, it returns the
// error of late.
func KillAll(find func() []Process, late func(left []Process) error) error {
	var left []Process
	return poll.Until(func() bool {
		left = find()
		for _, p := range left {
			_ = unix.Kill(p.PID, unix.SIGKILL)
		}
		return len(left) == 0
	}, func() error { return late(left) })
}

// Search finds the processes of one attempt. It remembers the sessions it has seen, since a process that has
// cleared its environment may still be in one of them.
type Search struct {
	entry []byte
	own   int
	// Since excludes processes that started earlier, without reading their environment; see Process.Start.
	Since    int
	Sessions map[int]bool
	buffer   bytes.Buffer
}

// NewSearch returns a search for the processes of the attempt with an id.
func NewSearch(id string) *Search {
	session, err := unix.Getsid(0)
	if err != nil {
		session = -1
	}
	return &Search{entry: []byte(Marker + "=" + id), own: session, Sessions: make(map[int]bool)}
}

// Find returns the living processes of the attempt, and its zombies.
func (f *Search) Find() (living, dead []Process) {
	all, err := List()
	if err != nil {
		return nil, nil
	}
	self := os.Getpid()
	found := make(map[int]Process)
	for _, p := range all {
		if p.PID == self || p.Start < f.Since {
			continue
		}
		if f.Sessions[p.session] || hasEntry(Environ(p.PID, &f.buffer), f.entry) {
			found[p.PID] = p
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if _, have := found[p.PID]; have || p.PID == self || p.Start < f.Since {
				continue
			}
			if _, child := found[p.Parent]; child {
				found[p.PID] = p
				grown = true
			}
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(found)) {
		p := found[pid]
		if p.session != f.own && p.session != 0 {
			f.Sessions[p.session] = true
		}
		if p.Zombie {
			dead = append(dead, p)
		} else {
			living = append(living, p)
		}
	}
	return living, dead
}

// KillMarked kills the processes marked with an attempt's id until none is left.
func KillMarked(id string) error {
	f := NewSearch(id)
	return KillAll(func() []Process {
		living, _ := f.Find()
		return living
	}, func(left []Process) error { return fmt.Errorf("%s: processes %v survive SIGKILL", id, left) })
}

// MarkerOf returns the marker in an environment, or "".
func MarkerOf(environ []byte) string {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if id, ok := bytes.CutPrefix(entry, []byte(Marker+"=")); ok {
			return string(id)
		}
	}
	return ""
}
