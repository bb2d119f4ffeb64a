package taskrunner

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// finds holds the attempts that an executor has found.
type finds struct {
	exec executor.Survivor
	done chan struct{} // closed when byID is set
	byID map[string]executor.Leftover
}

// scan asks an executor for its leftovers until it answers, and ends those without a recovery file. answered is called
// after the first reply or error.
func (r *recovery) scan(taskType string, f *finds, answered func()) {
	n := r.node
	level := slog.LevelDebug // the machine may not have this executor at all
	if r.expects(taskType) {
		level = slog.LevelWarn
	}
	var found []executor.Leftover
	for quiet := false; ; quiet = true {
		ctx, cancel := context.WithTimeout(r.ctx, survivorsTimeout)
		var err error
		found, err = f.exec.Survivors(ctx, n.Name)
		cancel()
		if err == nil {
			break
		}
		answered()
		if !quiet {
			n.Logger.Log(r.ctx, level, "it is not known yet what an earlier worker has left", "type", taskType, "error", err)
		}
		if !r.pause(recoverPause) {
			return
		}
	}
	f.byID = map[string]executor.Leftover{}
	var unknown []executor.Leftover
	for _, l := range found {
		switch {
		case l.Identity.Fleet != n.Fleet:
			// It belongs to another node with this name.
		case r.knows(l.ID):
			f.byID[l.ID] = l
		default:
			unknown = append(unknown, l)
		}
	}
	close(f.done)
	answered()
	for _, l := range unknown {
		r.work.Go(func() { r.removeUnwanted(taskType, f.exec, l) })
	}
}

// removeUnwanted ends an attempt without a recovery file, which a worker with another state folder has started. That worker
// has lost the registration, so only a lasting attempt may still be wanted; it is left until its run says otherwise.
func (r *recovery) removeUnwanted(taskType string, exec executor.Survivor, l executor.Leftover) {
	n := r.node
	interval := cmp.Or(n.Timing.WantedInterval, defaultWantedInterval)
	for wait := min(firstWanted, interval); v1.Lasts(taskType); wait = interval {
		wanted, err := n.isWanted(r.ctx, l.Identity)
		if err == nil && !wanted {
			break
		}
		if !r.pause(jittered(wait)) {
			return
		}
	}
	n.Logger.Info("an attempt of an earlier worker without a recovery file is ended", "attempt", l.ID)
	r.remove(exec, l)
}

// isSearching reports whether an executor has not yet reported what is left of earlier attempts.
// A nil recovery has nothing to look for.
func (r *recovery) isSearching(taskType string) bool {
	if r == nil || r.finds[taskType] == nil {
		return false
	}
	select {
	case <-r.finds[taskType].done:
		return false
	default:
		return true
	}
}

// expects reports whether an earlier worker has left attempts of a type.
func (r *recovery) expects(taskType string) bool {
	return slices.ContainsFunc(r.left, func(l *orphan) bool { return l.req.GetType() == taskType })
}

// knows reports whether an attempt has a recovery file.
func (r *recovery) knows(id string) bool {
	return slices.ContainsFunc(r.left, func(l *orphan) bool { return l.state.ID == id })
}

// remove ends what is left of an attempt. It retries until that succeeds or the node stops.
func (r *recovery) remove(exec executor.Survivor, l executor.Leftover) {
	for quiet := false; ; quiet = true {
		ctx, cancel := context.WithTimeout(r.ctx, survivorsTimeout)
		err := exec.Remove(ctx, l)
		cancel()
		if err == nil {
			return
		}
		if !quiet {
			r.node.Logger.Warn("what an earlier worker has left could not be ended yet", "attempt", l.ID, "error", err)
		}
		if !r.pause(recoverPause) {
			return
		}
	}
}

// pause waits for d. It returns false if the node stops.
func (r *recovery) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.ctx.Done():
		return false
	}
}
