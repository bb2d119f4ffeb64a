package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// steering is what of an attempt can be steered: the program that runs now, and its time.
// Of a batch that is another one from member to member. The zero value is nothing.
type steering struct {
	mu      sync.Mutex
	steerer executor.Steerer // nil: nothing runs, or it cannot be steered
	member  *member          // nil: nothing runs
	id      string           // of the executor's attempt
	limit   *timeLimit
}

// begin has the program of a member be the one that is steered, as soon as it has started.
func (h *steering) begin(exec executor.Executor, m *member, id string, limit *timeLimit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.steerer, _ = exec.(executor.Steerer)
	h.member, h.id, h.limit = m, id, limit
}

// end says that nothing runs any more. It waits for the end of what is being done.
func (h *steering) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.steerer, h.member, h.limit = nil, nil, nil
}

// Steer suspends an attempt, or resumes it. To be asked twice changes nothing. An
// error is a fault of the node; that there is nothing to be steered is an answer.
func (n *Node) Steer(ctx context.Context, req *v1.SteerRequest) (*v1.SteerResponse, error) {
	a := n.attempts.findClaim(names.Home(req.GetRunId(), req.GetChain()), req.GetTask(), req.GetClaim())
	if a == nil {
		return &v1.SteerResponse{Refused: fmt.Sprintf("nothing of it runs on node %s any more", n.Name)}, nil
	}
	refused, err := a.steering.steer(ctx, req)
	if refusal, ok := errors.AsType[*executor.Refusal](err); ok {
		return &v1.SteerResponse{Refused: refusal.Text}, nil
	}
	if errors.Is(err, executor.ErrNotRunning) {
		return &v1.SteerResponse{Refused: "it is just ending, or has not started yet"}, nil
	}
	if err != nil {
		return nil, err
	}
	if refused == "" {
		a.mu.Lock()
		a.updateRecoveryFile(func(k *recoveryState) { k.suspend(req.GetAction() == "pause") })
		a.mu.Unlock()
	}
	return &v1.SteerResponse{Refused: refused}, nil
}

func (h *steering) steer(ctx context.Context, req *v1.SteerRequest) (refused string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.member == nil:
		return "its program has not started yet", nil
	case h.member.name != req.GetTask() || h.member.claim != req.GetClaim():
		return fmt.Sprintf("it waits in its batch for its turn, or has had it; %s runs", h.member.name), nil
	case h.steerer == nil:
		return "tasks of its type cannot be paused", nil
	}
	switch req.GetAction() {
	case "pause":
		if err := h.steerer.Pause(ctx, h.id); err != nil {
			return "", err
		}
		h.limit.suspend()
	case "resume":
		if err := h.steerer.Resume(ctx, h.id); err != nil {
			return "", err
		}
		h.limit.resume()
	default:
		return fmt.Sprintf("this node does not know how to %s it", req.GetAction()), nil
	}
	return "", nil
}

// findClaim returns the attempt that has a dispatch of a task or instance, alone or in a
// batch; nil: there is none.
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
