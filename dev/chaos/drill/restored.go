package drill

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"
)

const (
	// restoredTasks is the number of tasks. They begin one after the other, so that their leases are raised at different times.
	restoredTasks = 10
	// copyAge is the least age of a copy that is put back. It corresponds to 30 s with the default heartbeat time-out.
	copyAge = 2 * grownHeartbeat
	// copyPause is the time between two copies.
	copyPause = 500 * time.Millisecond
)

// restoredDatabase kills Temporal and starts it on a copy of its database that is some seconds old: there, a heartbeat time-out is
// still as it was before a raise that the node has got acknowledged. One node is cut off meanwhile. No task starts elsewhere before its
// old processes have ended.
func restoredDatabase(y *Cluster) error {
	if err := y.start("a", "b"); err != nil {
		return err
	}
	c, err := y.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	gate := y.gate("work")
	d := y.crowd("restored", 1, job{gate: gate, tree: true, deaf: true})
	const task = "t0"
	onA, ids := map[string]bool{}, []string{}
	for range restoredTasks {
		id, err := y.submitGrowing(d, grownHeartbeat, grownLease)
		if err != nil {
			return err
		}
		if err := y.awaitStarted(id, []string{task}, "", 1); err != nil {
			return err
		}
		n, err := y.started(id, []string{task}, "a")
		if err != nil {
			return err
		}
		onA[id], ids = n == 1, append(ids, id)
		if err := y.pause(2 * grownHeartbeat); err != nil {
			return err
		}
	}
	old, err := y.copyBeforeRaise(c, ids, onA)
	if err != nil {
		return err
	}
	y.link("a", "temporal").Cut()
	if err := y.kill(serverName); err != nil {
		return err
	}
	// A machine that has lost its newest writes takes longer to start than the shortest lease is long.
	if err := errors.Join(old.putBack(y.database()), y.pause(grownHeartbeat), y.restartServer()); err != nil {
		return err
	}
	for _, id := range ids {
		if err := y.awaitStarted(id, []string{task}, "b", 1); err != nil {
			return err
		}
		err := y.eventually("the task of "+id+" runs", func() (bool, error) { return y.areRunning(id, []string{task}) })
		if err != nil {
			return err
		}
	}
	y.link("a", "temporal").Restore()
	if err := errors.Join(y.awaitNodes("a", "b"), y.open(gate)); err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := y.finished(id); err != nil {
			return err
		}
	}
	return nil
}

// databaseCopy is a copy of the database of a Temporal server.
type databaseCopy struct {
	dir string
	at  time.Time
	// timeouts holds the heartbeat time-outs in it, by run.
	timeouts map[string]time.Duration
}

// copyBeforeRaise returns a copy of copyAge in which some heartbeat time-outs of runs, one of them on the given ones, are lower than
// they are now.
func (y *Cluster) copyBeforeRaise(c client.Client, ids []string, of map[string]bool) (found *databaseCopy, err error) {
	var copies []*databaseCopy
	err = y.eventually("a heartbeat time-out is raised", func() (bool, error) {
		now := &databaseCopy{dir: filepath.Join(y.Dir, fmt.Sprint("copy-", time.Now().UnixNano())), timeouts: map[string]time.Duration{}}
		for _, id := range ids {
			timeouts, err := y.heartbeatTimeouts(c, id)
			if err != nil {
				return false, err
			}
			for _, timeout := range timeouts {
				now.timeouts[id] = timeout
			}
		}
		for len(copies) > 0 && time.Since(copies[0].at) >= copyAge {
			found, copies = copies[0], copies[1:]
			raised, cut := 0, 0
			for id, timeout := range found.timeouts {
				if timeout < now.timeouts[id] {
					raised++
					if of[id] {
						cut++
					}
				}
			}
			if cut > 0 {
				y.report("the copy of %.1f s ago is put back: %d raises are lost, %d of them on the node that is cut off", time.Since(found.at).Seconds(), raised, cut)
				return true, nil
			}
			if err := os.RemoveAll(found.dir); err != nil {
				return false, err
			}
		}
		if err := y.copyDatabase(now); err != nil {
			return false, err
		}
		copies = append(copies, now)
		return false, y.pause(copyPause)
	})
	return found, err
}

// copyDatabase copies the database while its server stands still: what it writes would be in one file and not in the other.
func (y *Cluster) copyDatabase(to *databaseCopy) error {
	if err := y.freeze(serverName); err != nil {
		return err
	}
	err := y.eventually("the server stands still", func() (bool, error) { return isStopped(y.process(serverName).Cmd.Process.Pid) })
	if err == nil {
		to.at, err = time.Now(), to.take(y.database())
	}
	return errors.Join(err, y.thaw(serverName))
}

// databaseFiles are the ends of the names of a database's files. SQLite creates the index of its log anew.
var databaseFiles = []string{"", "-wal"}

// take copies the files of a database.
func (d *databaseCopy) take(database string) error {
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		return err
	}
	for _, end := range databaseFiles {
		if err := copyFile(database+end, filepath.Join(d.dir, "db"+end)); err != nil {
			return err
		}
	}
	return nil
}

// putBack replaces a database by the copy. No process may use it.
func (d *databaseCopy) putBack(database string) error {
	if err := os.Remove(database + "-shm"); err != nil {
		return err
	}
	for _, end := range databaseFiles {
		if err := copyFile(filepath.Join(d.dir, "db"+end), database+end); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file, and replaces the content of an existing one.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
