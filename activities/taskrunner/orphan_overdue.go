package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
)

const (
	// endingSuffix is the suffix of a recovery file while its attempt is being ended. No worker continues that attempt.
	endingSuffix = ".ending"
	// endedPatience is how long an attempt that has ended by itself is kept for the next worker.
	endedPatience = time.Hour
	// findPatience is how long an executor may take to find overdue attempts before their processes are ended.
	findPatience = time.Second
)

// Keeper enforces the leases of attempts that outlive their worker, from another process. Its exported fields are set before the
// first call, and its calls are made one at a time.
type Keeper struct {
	// Dir is the state directory of the node, which is read at each call.
	Dir string
	// Node and Fleet name the node.
	Node, Fleet string
	Executor    executor.Executor

	// ends has the end of the lease of each attempt by its file, as first seen.
	ends map[string]leaseEnd
	// isSlow reports that the executor did not find its attempts in time.
	isSlow bool
}

// leaseEnd is when an attempt must be ended: by the wall clock, as its recovery file says, and by the clock that is never set.
type leaseEnd struct {
	wall time.Time
	at   executor.Instant
}

// EndOverdue ends the running attempts that have outlived their lease because the worker is dead or stalled. Attempts that
// ended by themselves are left for a while to the next worker, which keeps their results. Lasting attempts are never ended.
// If the executor cannot find its attempts now, the processes of overdue attempts are ended, and a later call does the rest.
// left is how many attempts may still have to be ended.
func (k *Keeper) EndOverdue(ctx context.Context) (left int, err error) {
	entries, err := os.ReadDir(k.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	overdue, ends := map[string]*orphan{}, map[string]leaseEnd{} // by id, and by path
	for _, entry := range entries {
		path := filepath.Join(k.Dir, entry.Name())
		if filepath.Ext(path) != recoverySuffix && filepath.Ext(path) != endingSuffix {
			continue
		}
		l, err := readOrphan(path)
		if err != nil || l.req.GetType() != k.Executor.Type() || l.state.Lasting {
			continue
		}
		ends[path] = k.endOf(l)
		if filepath.Ext(path) == endingSuffix || executor.Now() > ends[path].at {
			overdue[l.state.ID] = l
		} else {
			left++
		}
	}
	k.ends = ends
	if len(overdue) == 0 {
		return left, nil
	}
	survive := k.Executor.Capabilities().Survive
	found, err := k.find(ctx, survive, overdue)
	if err != nil {
		return left + len(overdue), err
	}
	var errs []error
	for _, f := range found {
		l := overdue[f.ID]
		if l == nil {
			continue
		}
		if !f.Running && time.Since(l.endAt()) < endedPatience {
			left++
			continue
		}
		f.Workload = l.state.workload()
		if err := l.endNow(ctx, survive, f); err != nil {
			left++
			errs = append(errs, fmt.Errorf("end %s: %w", f.ID, err))
		}
	}
	return left, errors.Join(errs...)
}

// find returns the attempts that the executor finds. If that takes too long or fails, find kills the processes of overdue attempts,
// and gives the executor more time in the next call.
func (k *Keeper) find(ctx context.Context, survive executor.Survivor, overdue map[string]*orphan) (found []executor.Leftover, err error) {
	if !k.isSlow {
		short, cancel := context.WithTimeout(ctx, findPatience)
		defer cancel()
		if found, err = survive.Survivors(short, k.Node); err == nil {
			return found, nil
		}
	}
	over, cancel := context.WithCancel(ctx)
	cancel() // no engine is asked
	for _, l := range overdue {
		_ = survive.Remove(over, executor.Leftover{ID: l.state.ID, Workload: l.state.workload()})
	}
	if k.isSlow {
		found, err = survive.Survivors(ctx, k.Node)
	}
	k.isSlow = err != nil
	return found, err
}

// EndUnrecoverable ends the running attempts without a recovery file that started before an instant, such as the commands of
// agents. No later worker continues them. The caller knows that the worker has ended or is stalled.
func (k *Keeper) EndUnrecoverable(ctx context.Context, before time.Time) error {
	survive := k.Executor.Capabilities().Survive
	found, err := survive.Survivors(ctx, k.Node)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range found {
		path := recoveryPath(k.Dir, f.ID)
		if !f.Running || f.Identity.Fleet != k.Fleet || f.StartedAt.After(before) || isFile(path) {
			continue
		}
		if err := survive.Remove(ctx, f); err != nil {
			errs = append(errs, fmt.Errorf("end %s: %w", f.ID, err))
		}
	}
	return errors.Join(errs...)
}

// isFile reports whether a file exists. It also returns true if that is unknown.
func isFile(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// endOf returns when an attempt must be ended. Until its recovery file says otherwise, the instant stays the same, even if the
// wall clock is set.
func (k *Keeper) endOf(l *orphan) leaseEnd {
	wall := l.endAt()
	if seen, ok := k.ends[l.path]; ok && seen.wall.Equal(wall) {
		return seen
	}
	return leaseEnd{wall, executor.Now().Add(time.Until(wall))}
}

// endNow ends what is left of an attempt, so that the next worker finds nothing of it.
func (l *orphan) endNow(ctx context.Context, exec executor.Survivor, f executor.Leftover) error {
	ending := strings.TrimSuffix(l.path, filepath.Ext(l.path)) + endingSuffix
	if err := os.Rename(l.path, ending); err != nil {
		return nil // the attempt's worker has just settled it
	}
	if err := exec.Remove(ctx, f); err != nil {
		return err
	}
	// Whatever fails here is done when a worker of the node starts.
	dir := filepath.Dir(l.path)
	workspaces := filepath.Join(dir, survivorsFolder)
	_ = workspace.Remove(filepath.Join(workspaces, filepath.Base(l.state.Workspace)))
	_ = workspace.Remove(l.state.TempDir)
	for _, path := range []string{ending, workspaces, filepath.Join(dir, claimsFolder), dir} {
		_ = os.Remove(path)
	}
	return nil
}
