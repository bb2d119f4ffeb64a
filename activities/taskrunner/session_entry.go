package taskrunner

import (
	"context"
	"errors"
	"fmt"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// EntryError is the error for an attempt that cannot be entered.
type EntryError struct {
	// Text is the reason, for people.
	Text string
	// Missing is set if no such attempt runs on the node. Otherwise the attempt runs but cannot be entered.
	Missing bool
}

// Error returns the text.
func (e *EntryError) Error() string { return e.Text }

// NotFound reports whether no such attempt runs on the node.
func (e *EntryError) NotFound() bool { return e.Missing }

// Enter opens the attempt that a header names by its run, chain, task and claim. For the attempt's idle time-out, the
// session counts as open until the caller calls the returned function. The error is an *EntryError, or a fault of the
// node.
func (n *Node) Enter(ctx context.Context, h *v1.SessionHeader) (executor.Inside, func(), error) {
	home, task := names.Home(h.GetRunId(), h.GetChain()), h.GetTask()
	a := n.attempts.findClaim(home, task, h.GetClaim())
	if a == nil || a.attendance.isOver() {
		return nil, nil, &EntryError{Text: n.missingText(home, task), Missing: true}
	}
	enter := n.capabilities(a.req.GetType()).Enter
	if enter == nil {
		return nil, nil, &EntryError{Text: fmt.Sprintf("tasks of type %s cannot be entered", a.req.GetType())}
	}
	id, missing := a.steering.running(task, h.GetClaim())
	if missing != "" {
		return nil, nil, &EntryError{Text: fmt.Sprintf("task %s: %s", task, missing), Missing: true}
	}
	inside, err := enter(ctx, id)
	switch refusal, refused := errors.AsType[*executor.Refusal](err); {
	case refused:
		return nil, nil, &EntryError{Text: refusal.Text}
	case errors.Is(err, executor.ErrNotRunning):
		return nil, nil, &EntryError{Text: fmt.Sprintf("task %s is just ending, or has not started yet", task), Missing: true}
	case err != nil:
		return nil, nil, fmt.Errorf("enter task %s of run %s: %w", task, h.GetRunId(), err)
	}
	end, ok := a.sessions.begin(h.GetKind())
	if !ok {
		return nil, nil, &EntryError{Text: fmt.Sprintf("task %s already has %d sessions open that copy or serve files, which is the maximum; try again when one has ended", task, maxTransfers)}
	}
	return inside, end, nil
}

// missingText returns why the node has no attempt of a task under a claim.
func (n *Node) missingText(home, task string) string {
	for _, a := range n.attempts.all() {
		if a.key.home != home || a.attendance.isOver() {
			continue
		}
		for i := range a.members {
			if a.members[i].name == task {
				return fmt.Sprintf("another dispatch of task %s runs on node %s now; try again", task, n.Name)
			}
		}
	}
	return fmt.Sprintf("task %s has ended on node %s, or never ran there", task, n.Name)
}

// running returns the executor's id of a member's attempt, or why the member does not run.
func (h *steering) running(task string, claim int32) (id, missing string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if missing = h.missing(task, claim); missing != "" {
		return "", missing
	}
	return h.id, ""
}
