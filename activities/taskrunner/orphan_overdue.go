package taskrunner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"switchyard/activities/executor"
)

const (
	// endingSuffix is that of the recovery file of an attempt that is being ended: no worker continues
	// on with it.
	endingSuffix = ".ending"
	// removeMargin is how long before the server gives a task to another node its attempt
	// is ended, if that leaves it as long as a live worker would.
	removeMargin = 3 * time.Second
	// endedPatience is how long one that has ended by itself waits for the next worker.
	endedPatience = time.Hour
)

// EndOverdue ends what runs of the attempts of a node although its lease is over: the
// worker is dead, or held up. Attempts that have ended by themselves are left to the next
// worker, which keeps their results, but not for ever, and lasting ones for ever. dir is the node's state; it is read anew each time.
// left is how many attempts may still have to be ended.
func EndOverdue(ctx context.Context, dir, node string, exec executor.Survivor) (left int, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	overdue := map[string]*orphan{} // by id
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if filepath.Ext(path) != recoverySuffix && filepath.Ext(path) != endingSuffix {
			continue
		}
		l, err := readOrphan(path)
		switch {
		case err != nil || l.req.GetType() != exec.Type() || l.state.Lasting:
		case filepath.Ext(path) == endingSuffix || time.Now().After(l.endAt()):
			overdue[l.state.ID] = l
		default:
			left++
		}
	}
	if len(overdue) == 0 {
		return left, nil
	}
	found, err := exec.Survivors(ctx, node)
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
		if err := l.endNow(ctx, exec, f); err != nil {
			left++
			errs = append(errs, fmt.Errorf("end %s: %w", f.ID, err))
		}
	}
	return left, errors.Join(errs...)
}

// endNow ends what is left of an attempt, of which the next worker finds nothing then.
func (l *orphan) endNow(ctx context.Context, exec executor.Survivor, f executor.Leftover) error {
	ending := strings.TrimSuffix(l.path, filepath.Ext(l.path)) + endingSuffix
	if err := os.Rename(l.path, ending); err != nil {
		return nil // its worker has just settled it
	}
	if err := exec.Remove(ctx, f); err != nil {
		return err
	}
	// What of this does not succeed is done when a worker of the node starts.
	dir := filepath.Dir(l.path)
	workspaces := filepath.Join(dir, survivorsFolder)
	_ = os.RemoveAll(filepath.Join(workspaces, filepath.Base(l.state.Workspace)))
	_ = os.RemoveAll(l.state.TempDir)
	for _, path := range []string{ending, workspaces, filepath.Join(dir, claimsFolder), dir} {
		_ = os.Remove(path)
	}
	return nil
}

// endAt returns when an unattended attempt is to be ended, so that nothing is left
// of it when the server gives its task to another node.
func (l *orphan) endAt() time.Time {
	t := termsOf(l.state.Heartbeat, 0)
	silence := cmp.Or(max(l.state.Heartbeat, 0), defaultHeartbeatTimeout)
	end := l.beatAt.Add(max(t.stop, min(t.kill, silence-removeMargin)))
	if l.state.AloneUntil.After(end) {
		end = l.state.AloneUntil
	}
	return end
}
