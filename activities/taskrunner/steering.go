package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// Actions on an attempt: the values of SteerRequest.action.
const (
	actionPause   = "pause"
	actionResume  = "resume"
	actionStop    = "stop"
	actionRestart = "restart"
	actionFind    = "find"
)

// steering holds what can be steered of an attempt: the running program and its time limit. In a batch it changes with
// each member. The zero value steers nothing.
type steering struct {
	mu     sync.Mutex
	can    executor.Capabilities // none if nothing runs
	member *member               // nil if nothing runs
	id     string                // id of the executor's attempt
	limit  *timeLimit
}

// begin makes the program of a member the steered one, as soon as the program has started.
func (h *steering) begin(can executor.Capabilities, m *member, id string, limit *timeLimit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.can, h.member, h.id, h.limit = can, m, id, limit
}

// end clears the steered program. It waits for an action in progress.
func (h *steering) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.can, h.member, h.limit = executor.Capabilities{}, nil, nil
}

// errGivenUp means that Temporal no longer waits for the answer to a request.
var errGivenUp = errors.New("the request has timed out")

// Steer performs SteerRequest.action on an attempt. All actions except "restart" are idempotent. An error is a fault of
// the node; a refused action is an answer. A request that reaches the node too late is not carried out: it could undo a
// later one.
func (n *Node) Steer(ctx context.Context, req *historyv1.SteerRequest) (*historyv1.SteerResponse, error) {
	home := names.Home(req.GetRunId(), req.GetChain())
	if undecided := n.recovery.Load().undecidedOf(attemptKey{home, names.AttemptID(req.GetTask(), req.GetClaim())}); undecided != nil {
		await(ctx, undecided)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("node %s does not know yet what its earlier worker has left: %w", n.Name, context.Cause(ctx))
		}
	}
	a := n.attempts.findClaim(home, req.GetTask(), req.GetClaim())
	if req.GetAction() == actionFind && a != nil {
		return &historyv1.SteerResponse{}, nil // an attempt that has ended still has its answer
	}
	if req.GetAction() == actionFind && n.State.Dir == "" {
		// The attempt may be running. It is found when the node has its state again.
		return nil, fmt.Errorf("node %s cannot find what its earlier worker has left; the log of its worker says why", n.Name)
	}
	if a == nil && n.attempts.findLeft(attemptKey{home, names.AttemptID(req.GetTask(), req.GetClaim())}) != nil {
		return nil, fmt.Errorf("the worker of node %s is being restarted; the next one continues the attempt", n.Name)
	}
	if a == nil {
		return &historyv1.SteerResponse{Refused: fmt.Sprintf("nothing of it runs on node %s any more", n.Name)}, nil
	}
	a.awaitContinued(ctx)
	isWanted := func() bool {
		return !activity.IsActivity(ctx) || heartbeat.IsWanted(ctx, n.Client, activity.GetInfo(ctx).TaskToken)
	}
	refused, err := a.steering.steer(ctx, req, isWanted, a.stop)
	if refusal, ok := errors.AsType[*executor.Refusal](err); ok {
		return &historyv1.SteerResponse{Refused: refusal.Text}, nil
	}
	if errors.Is(err, executor.ErrNotRunning) {
		return &historyv1.SteerResponse{Refused: "it is just ending, or has not started yet"}, nil
	}
	if err != nil {
		return nil, err
	}
	if action := req.GetAction(); refused == "" && (action == actionPause || action == actionResume) {
		a.recoveryFile.update(func(k *recoveryState) { k.suspend(action == actionPause) })
	}
	return &historyv1.SteerResponse{Refused: refused}, nil
}

// awaitContinued waits, for a short while, until this worker has taken over a running attempt from an earlier one.
func (a *attempt) awaitContinued(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, recoverPatience)
	defer cancel()
	for !a.progress.isWaiting() && a.steering.isIdle() && !a.attendance.isOver() && short.Err() == nil {
		await(short, time.After(continuedPause))
	}
}

// continuedPause is the time between two looks at an attempt that is about to be taken over.
const continuedPause = 20 * time.Millisecond

// isIdle reports whether nothing can be steered now.
func (h *steering) isIdle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.member == nil
}

// missing returns why a member does not run, or "" if it does. mu is held.
func (h *steering) missing(task string, claim int32) string {
	switch {
	case h.member == nil:
		return "its program has not started yet"
	case h.member.name != task || h.member.claim != claim:
		return fmt.Sprintf("it waits in its batch for its turn, or has had it; %s runs", h.member.name)
	}
	return ""
}

// steer performs the action of a request, unless nothing waits for its answer. stop ends the attempt.
func (h *steering) steer(ctx context.Context, req *historyv1.SteerRequest, isWanted func() bool, stop func(error)) (refused string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !isWanted() {
		return "", errGivenUp
	}
	if missing := h.missing(req.GetTask(), req.GetClaim()); missing != "" {
		return missing, nil
	}
	switch action := req.GetAction(); {
	case (action == actionPause || action == actionResume) && h.can.Steer == nil:
		return "tasks of its type cannot be paused", nil
	case (action == actionStop || action == actionRestart) && h.can.Restart == nil:
		return fmt.Sprintf("tasks of its type end by themselves: %s is for those that run until they are stopped", action), nil
	}
	switch req.GetAction() {
	case actionStop:
		stop(errStopAsked)
	case actionRestart:
		if err := h.can.Restart(ctx, h.id); err != nil {
			return "", err
		}
	case actionPause:
		if err := h.can.Steer.Pause(ctx, h.id); err != nil {
			return "", err
		}
		h.limit.suspend()
	case actionResume:
		if err := h.can.Steer.Resume(ctx, h.id); err != nil {
			return "", err
		}
		h.limit.resume()
	default:
		return fmt.Sprintf("this node does not know how to %s it", req.GetAction()), nil
	}
	return "", nil
}

// findClaim returns the attempt that runs a dispatch of a task or instance, alone or in a batch. It returns nil if there
// is none.
func (s *attempts) findClaim(home, task string, claim int32) *attempt {
	if a := s.find(attemptKey{home, names.AttemptID(task, claim)}); a != nil {
		return a
	}
	for _, a := range s.all() {
		if a.key.home != home {
			continue
		}
		for i := range a.members {
			if a.members[i].name == task && a.members[i].claim == claim {
				return a
			}
		}
	}
	return nil
}
