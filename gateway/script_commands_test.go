package gateway

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// handleCommands handles the updates for commands and the query for instances. It refuses the first update of each task, like a
// run that is continuing as new.
func (s *script) handleCommands(ctx workflow.Context) error {
	for name, paused := range map[string]bool{names.PauseUpdate: true, names.ResumeUpdate: false} {
		err := workflow.SetUpdateHandlerWithOptions(ctx, name, func(ctx workflow.Context, req *historyv1.RunCommand) error {
			s.status.Revision++
			s.status.Run.State, s.status.Run.Error = "running", req.GetReason()
			if paused {
				s.status.Run.State = "paused"
			}
			return workflow.UpsertTypedSearchAttributes(ctx, stateKey.ValueSet(s.status.Run.State))
		}, workflow.UpdateHandlerOptions{Validator: func(*historyv1.RunCommand) error {
			if (s.status.Run.State == "paused") == paused {
				return temporal.NewNonRetryableApplicationError("the run is "+s.status.Run.State, names.TaskStateError, nil)
			}
			return nil
		}})
		if err != nil {
			return err
		}
	}
	for name, f := range map[string]func(*v1.Task){
		names.HoldUpdate:        func(t *v1.Task) { t.Held = true },
		names.ReleaseUpdate:     func(t *v1.Task) { t.Held = false },
		names.CancelTaskUpdate:  func(t *v1.Task) { t.State = "cancelled" },
		names.PauseTaskUpdate:   func(t *v1.Task) { t.State, t.Reason = "paused", "suspended" },
		names.ResumeTaskUpdate:  func(t *v1.Task) { t.State, t.Reason = "pending", "" },
		names.KillTaskUpdate:    func(t *v1.Task) { t.State = "killed" },
		names.StopTaskUpdate:    func(t *v1.Task) { t.State = "stopped" },
		names.RestartTaskUpdate: func(t *v1.Task) { t.Reason = "restarted" },
		names.ApproveUpdate:     func(t *v1.Task) { t.State = "completed" },
		names.RejectUpdate:      func(t *v1.Task) { t.State = "rejected" },
	} {
		err := workflow.SetUpdateHandlerWithOptions(ctx, name, func(_ workflow.Context, req *historyv1.TaskCommand) error {
			if !s.commanded[req.GetTask()] {
				s.commanded[req.GetTask()] = true
				return temporal.NewNonRetryableApplicationError("the run is continuing as new; try again", names.RunContinuingError, nil)
			}
			task := proto.CloneOf(s.status.Run.Tasks[req.GetTask()])
			f(task)
			task.Error = req.GetReason()
			s.set(&historyv1.StatusResponse{Run: &v1.Run{Tasks: map[string]*v1.Task{req.GetTask(): task}}})
			return nil
		}, workflow.UpdateHandlerOptions{Validator: func(req *historyv1.TaskCommand) error { return s.mayCommand(name, req) }})
		if err != nil {
			return err
		}
	}
	return workflow.SetQueryHandler(ctx, names.InstancesQuery, s.instances)
}

func (s *script) mayCommand(name string, req *historyv1.TaskCommand) error {
	task := s.status.Run.Tasks[req.GetTask()]
	if task == nil {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("task %q: unknown task", req.GetTask()), names.UnknownTaskError, nil)
	}
	if isDecision := name == names.ApproveUpdate || name == names.RejectUpdate; isDecision && task.GetState() == "paused" && task.GetType() == v1.TypeApproval {
		return nil
	}
	if task.GetState() != "pending" && (name != names.ResumeTaskUpdate || task.GetReason() != "suspended") {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("task %s is %s", req.GetTask(), task.GetState()), names.TaskStateError, nil)
	}
	return nil
}

// childFrom is the first instance that a child of the scripted run carries.
const childFrom = 4

// deadInChild is an instance that is dead-lettered in a child.
const deadInChild = 9

// instances answers the query for instances. The run returns two at a time, and refers to the child from childFrom on.
func (s *script) instances(req *historyv1.InstancesRequest) (*historyv1.InstancesResponse, error) {
	if req.GetFrom() >= childFrom {
		child := names.FanOut{Run: s.status.Run.GetId(), Task: req.GetTask(), From: childFrom}.ID()
		return &historyv1.InstancesResponse{Items: s.status.GetItems()[req.GetTask()], Child: child}, nil
	}
	res := answerInstances(req, childFrom)
	res.Items = s.status.GetItems()[req.GetTask()]
	return res, nil
}

func answerInstances(req *historyv1.InstancesRequest, to int32) *historyv1.InstancesResponse {
	res := &historyv1.InstancesResponse{Next: min(req.GetFrom()+min(req.GetLimit(), 2), to), Records: map[int32]string{}, Claims: map[int32]int32{}}
	for i := req.GetFrom(); i < res.Next; i++ {
		state := "assigned"
		if i == deadInChild {
			state = "dead_letter"
		}
		res.Instances = append(res.Instances, &v1.Instance{Index: i, State: state, Node: fmt.Sprintf("n%d", i)})
		res.Claims[i] = 7
	}
	return res
}

// scriptedFanOut stands in for a child that carries a part of a fan-out, until it is told to end.
func scriptedFanOut(ctx workflow.Context, in *historyv1.RunInput) error {
	part := in.GetPartition()
	events := &historyv1.EventsResponse{}
	err := errors.Join(
		workflow.SetQueryHandler(ctx, names.InstancesQuery, func(req *historyv1.InstancesRequest) (*historyv1.InstancesResponse, error) {
			return answerInstances(req, part.GetTo()), nil
		}),
		workflow.SetUpdateHandler(ctx, names.HoldUpdate, func(_ workflow.Context, req *historyv1.TaskCommand) error {
			if _, index, ok := names.ParseInstanceName(req.GetTask()); !ok || int32(index) >= part.GetTo() {
				return temporal.NewNonRetryableApplicationError(fmt.Sprintf("task %q: unknown task", req.GetTask()), names.UnknownTaskError, nil)
			}
			return nil
		}),
		workflow.SetQueryHandler(ctx, names.StatusQuery, func(*historyv1.StatusRequest) (*historyv1.StatusResponse, error) {
			each := &v1.Task{State: v1.TaskRunning, Count: new(int32), Instances: []*v1.Instance{
				{Index: part.GetFrom(), State: v1.TaskCompleted}, {Index: part.GetFrom() + 1, State: v1.TaskAssigned, Node: "n"},
			}}
			return &historyv1.StatusResponse{Run: &v1.Run{Tasks: map[string]*v1.Task{"each": each}}, TaskCount: 1}, nil
		}),
		workflow.SetQueryHandler(ctx, names.EventsQuery, func(req *historyv1.EventsRequest) (*historyv1.EventsResponse, error) {
			return &historyv1.EventsResponse{Slices: events.GetSlices(), Events: events.GetEvents()[min(int(req.GetOffset()), len(events.GetEvents())):]}, nil
		}),
		workflow.SetUpdateHandler(ctx, names.RetryUpdate, func(_ workflow.Context, req *historyv1.RetryTaskRequest) error {
			if _, index, _ := names.ParseInstanceName(req.GetTask()); index != deadInChild {
				return temporal.NewNonRetryableApplicationError(fmt.Sprintf("task %q is no dead letter", req.GetTask()), names.TaskStateError, nil)
			}
			return nil
		}),
	)
	if err != nil {
		return err
	}
	ended := false
	selector := workflow.NewSelector(ctx)
	onSignal(ctx, selector, eventsSignal, func(e *historyv1.EventsResponse) { events = e })
	onSignal(ctx, selector, endSignal, func(*string) { ended = true })
	onSignal(ctx, selector, panicSignal, func(text *string) { panic(*text) })
	for !ended {
		selector.Select(ctx)
	}
	return nil
}
