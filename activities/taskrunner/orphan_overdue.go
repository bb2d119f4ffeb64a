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
)

const (
	// endingSuffix is the suffix of a recovery file while its attempt is being ended. No worker continues that attempt.
	endingSuffix = ".ending"
	// endedPatience is how long an attempt that has ended by itself is kept for the next worker.
	endedPatience = time.Hour
)

// EndOverdue ends the running attempts of a node that have outlived their lease because the worker is dead or stalled.
// Attempts that ended by themselves are left for a while to the next worker, which keeps their results. Lasting attempts
// are never ended. dir is the node's state directory and is read at each call. left is how many attempts may still have
// to be ended.
func EndOverdue(ctx context.Context, dir, node string, exec executor.Executor) (left int, err error) {
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
	survive := exec.Capabilities().Survive
	found, err := survive.Survivors(ctx, node)
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
		if err := l.endNow(ctx, survive, f); err != nil {
			left++
			errs = append(errs, fmt.Errorf("end %s: %w", f.ID, err))
		}
	}
	return left, errors.Join(errs...)
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
	_ = os.RemoveAll(filepath.Join(workspaces, filepath.Base(l.state.Workspace)))
	_ = os.RemoveAll(l.state.TempDir)
	for _, path := range []string{ending, workspaces, filepath.Join(dir, claimsFolder), dir} {
		_ = os.Remove(path)
	}
	return nil
}
