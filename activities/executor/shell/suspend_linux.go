package shell

import (
	"maps"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor/shell/cgroup"
	"switchyard/activities/executor/shell/poll"
)

// suspend freezes the cgroup, including processes that are forked into it later.
func (c *cgroupTree) suspend(wanted func() error) error {
	if err := cgroup.Freeze(c.path, true); err != nil {
		return err
	}
	return poll.While(wanted, func() bool { return cgroup.IsFrozen(c.path) })
}

func (c *cgroupTree) resume() error { return cgroup.Freeze(c.path, false) }

// suspend stops every process that it finds, until two consecutive searches have
// found the same processes, all of them stopped. The second search would have found
// any process that was forked before its parent stopped, and a signalled process no
// longer forks.
func (m *markerTree) suspend(wanted func() error) error {
	signalled, before := map[int]bool{}, map[int]bool(nil)
	return poll.While(wanted, func() bool {
		now, stand := map[int]bool{}, true
		for _, p := range m.find() {
			now[p.PID] = true
			if !p.IsStopped(signalled[p.PID]) {
				stand = false
				_ = unix.Kill(p.PID, unix.SIGSTOP)
				signalled[p.PID] = true
			}
		}
		same := stand && before != nil && maps.Equal(before, now)
		if before = nil; stand {
			before = now
		}
		return same
	})
}

func (m *markerTree) resume() error {
	for _, p := range m.find() {
		_ = unix.Kill(p.PID, unix.SIGCONT)
	}
	return nil
}
