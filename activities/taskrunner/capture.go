package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"io"

	"switchyard/activities/executor"
	"switchyard/workflows/names"
)

// Capture writes the files of the running attempt under a claim of a task or instance to an archive. The error is an
// *executor.Refusal, with a text for people, if no archive can be made, for example because the attempt has ended. Any
// other error is a fault of the node or of the receiver of the archive.
func (n *Node) Capture(ctx context.Context, run, chain, task string, claim int32, to io.Writer) (executor.Captured, error) {
	home := names.Home(run, chain)
	if undecided := n.recovery.Load().undecidedOf(attemptKey{home, names.AttemptID(task, claim)}); undecided != nil {
		await(ctx, undecided)
		if ctx.Err() != nil {
			return executor.Captured{}, fmt.Errorf("node %s does not know yet what its earlier worker has left: %w", n.Name, context.Cause(ctx))
		}
	}
	refuse := func(format string, args ...any) (executor.Captured, error) {
		if n.attempts.isLeaving() { // the next worker continues the attempt
			return executor.Captured{}, fmt.Errorf("the worker of node %s stops", n.Name)
		}
		return executor.Captured{}, &executor.Refusal{Text: fmt.Sprintf(format, args...)}
	}
	a := n.attempts.findClaim(home, task, claim)
	if a == nil || a.attendance.isOver() {
		return refuse("%s", n.missingText(home, task))
	}
	capturer := n.capabilities(a.req.GetType()).Capture
	if capturer == nil {
		return refuse("no environment can be made of task %s: it is of type %s, and not a container or a machine", task, a.req.GetType())
	}
	id, missing := a.steering.running(task, claim)
	if missing != "" {
		return refuse("task %s: %s", task, missing)
	}
	captured, err := capturer.Capture(ctx, id, to)
	switch refusal, refused := errors.AsType[*executor.Refusal](err); {
	case refused:
		return refuse("task %s: %s", task, refusal.Text)
	case errors.Is(err, executor.ErrNotRunning):
		return refuse("task %s is ending, or has not started yet", task)
	case err != nil:
		return executor.Captured{}, fmt.Errorf("capture task %s of run %s: %w", task, run, err)
	}
	return captured, nil
}

// isLeaving reports whether the worker is stopping.
func (s *attempts) isLeaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving != nil
}
