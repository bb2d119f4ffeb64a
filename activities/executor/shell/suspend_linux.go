package shell

import (
	"maps"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// suspend freezes the cgroup, which holds what is forked into it, too.
func (c *cgroup) suspend(wanted func() error) error {
	if err := freezeCgroup(c.path, true); err != nil {
		return err
	}
	return await(wanted, func() bool { return frozenCgroup(c.path) })
}

func (c *cgroup) resume() error { return freezeCgroup(c.path, false) }

// freezeCgroup has all processes in and below a directory stand still, or go on.
func freezeCgroup(path string, frozen bool) error {
	value := "0"
	if frozen {
		value = "1"
	}
	return os.WriteFile(filepath.Join(path, "cgroup.freeze"), []byte(value), 0)
}

// frozenCgroup tells whether they all stand still.
func frozenCgroup(path string) bool {
	events, err := os.ReadFile(filepath.Join(path, "cgroup.events"))
	return err == nil && countOf(events, "frozen") == 1
}

// suspend stops every process that it finds, until two looks one after the other have
// found the same ones, and all of them standing: what was forked before its parent
// stood still was there to be found by the second. A process that has been signalled
// does not fork any more.
func (m *marked) suspend(wanted func() error) error {
	signalled, before := map[int]bool{}, map[int]bool(nil)
	return await(wanted, func() bool {
		now, stand := map[int]bool{}, true
		for _, p := range m.find() {
			now[p.pid] = true
			if !p.stands(signalled[p.pid]) {
				stand = false
				_ = unix.Kill(p.pid, unix.SIGSTOP)
				signalled[p.pid] = true
			}
		}
		same := stand && before != nil && maps.Equal(before, now)
		if before = nil; stand {
			before = now
		}
		return same
	})
}

// stands tells whether a process does not go on. One that waits in the kernel, for a
// disk or for the child of a vfork, stops on its way back to its program.
func (p process) stands(signalled bool) bool {
	switch p.state {
	case 'T', 't':
		return true
	case 'D':
		return signalled
	}
	return false
}

func (m *marked) resume() error {
	for _, p := range m.find() {
		_ = unix.Kill(p.pid, unix.SIGCONT)
	}
	return nil
}

// await looks until done is true, or wanted says why it is not wanted any more.
func await(wanted func() error, done func() bool) error {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, watch) {
		if err := wanted(); err != nil {
			return err
		}
		if done() {
			return nil
		}
		time.Sleep(pause)
	}
}
