package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Reopen returns the state from which an ended run continues, which is its status at the end of the previous generation.
// A large state is stored in parts that LoadState returns. A task that had not ended when the run was closed from outside
// counts as cancelled. If an attempt of such a task completes regardless, its result is the answer of the next attempt.
func (c *Control) Reopen(ctx context.Context, req *historyv1.ReopenRequest) (*historyv1.RunState, error) {
	var status historyv1.StatusResponse
	if err := loadOfRun(ctx, c.Store, storekey.Status(names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration()-1), &status); err != nil {
		return nil, err
	}
	run := status.GetRun()
	runState := &historyv1.RunState{
		CreatedAt: run.GetCreatedAt(), SubmittedBy: run.GetSubmittedBy(), Approval: run.GetApproval(), Context: run.GetContext(), Revision: status.GetRevision(),
		EventSlices: status.GetEventSlices(), NextEvent: status.GetNextEvent(), Cancelled: run.GetState() == v1.RunCancelled, Tasks: make(map[string]*historyv1.TaskState, len(run.GetTasks())),
	}
	if req.GetFinallyOnly() {
		runState.Abort = endOutside(run)
	}
	for name, task := range run.GetTasks() {
		for _, one := range task.GetInstances() {
			instance := names.InstanceName(name, int(one.GetIndex()))
			runState.Tasks[instance] = carried(&status, instance, reopenedInstance(one))
			runState.Tasks[instance].LeftRecords = left(req, instance, runState.Tasks[instance].GetTask())
		}
		var expanded *timestamppb.Timestamp
		if len(task.GetInstances()) > 0 {
			expanded = task.GetInstances()[0].GetCreatedAt()
		}
		task.Type, task.DependsOn, task.Finally, task.Instances, task.Held = "", nil, false, nil, false // the definition has the first three, and instances have entries of their own
		runState.Tasks[name] = carried(&status, name, task)
		runState.Tasks[name].ExpandedAt = expanded
		runState.Tasks[name].LeftRecords = left(req, name, task)
	}
	if err := c.addAbandoned(ctx, req, runState); err != nil {
		return nil, err
	}
	for name, items := range status.GetItems() {
		if t := runState.GetTasks()[name]; t != nil {
			t.Items = items
		}
	}
	for _, part := range status.GetPartitions() {
		t := runState.GetTasks()[part.GetTask()]
		t.Partitions = append(t.Partitions, part)
	}
	if proto.Size(runState) <= maxReopenedBytes {
		return runState, nil
	}
	return c.SaveState(ctx, names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration(), req.GetExecution(), runState)
}

// endOutside returns the outcome of an ended run if that does not follow from how its tasks have ended, otherwise nil.
func endOutside(run *v1.Run) *v1.Run {
	switch end := (&v1.Run{State: run.GetState(), Reason: run.GetReason(), Error: run.GetError()}); {
	case run.GetState() == v1.RunCancelled:
		return &v1.Run{Error: run.GetError()}
	case run.GetState() == v1.RunCompleted, run.GetReason() == v1.ReasonTaskFailed, run.GetReason() == v1.ReasonFinallyFailed:
		return nil
	case run.GetState() == v1.RunFailed, run.GetState() == v1.RunRejected:
		return end
	}
	return &v1.Run{State: v1.RunFailed, Reason: v1.ReasonTerminated, Error: "the run was terminated"} // it was open at that time
}

// addAbandoned adds the attempts of a generation closed from outside that may still be running.
func (c *Control) addAbandoned(ctx context.Context, req *historyv1.ReopenRequest, runState *historyv1.RunState) error {
	// The newest execution of a partition is that of the previous generation.
	if _, isPartition := names.ParseFanOutID(req.GetRunId()); req.GetTerminated() == "" && !isPartition {
		return nil
	}
	var err error
	if runState.Abandoned, err = abandonedAttempts(ctx, c.Client, req.GetRunId(), req.GetTerminated()); err != nil {
		return err
	}
	for _, a := range runState.GetAbandoned() {
		for name, record := range recordsOf(a.GetAttempt()) {
			if t := runState.GetTasks()[name]; t != nil && t.GetTask().GetState() != v1.TaskCompleted {
				t.LeftRecords = append(t.LeftRecords, record)
			}
		}
	}
	return nil
}

// carried returns the state to keep of a task of an ended run.
func carried(status *historyv1.StatusResponse, name string, task *v1.Task) *historyv1.TaskState {
	t := &historyv1.TaskState{Task: task, Claim: status.GetClaims()[name], Record: status.GetRecords()[name], Checkpoint: status.GetCheckpoints()[name]}
	if r := task.GetResult(); r != nil && t.Record != "" {
		r.Stdout, r.Stderr, r.Output, r.ContextUpdate = "", "", nil, nil
		r.StdoutTruncated, r.StderrTruncated = true, true
	}
	return t
}

// left returns the keys of records that lost attempts of a task may have left in this generation and earlier ones. A node
// that was cut off may have stored a record since.
func left(req *historyv1.ReopenRequest, name string, task *v1.Task) (keys []string) {
	home := names.Home(req.GetRunId(), req.GetChain())
	if of, ok := names.ParseFanOutID(req.GetRunId()); ok {
		home = names.Home(of.Run, of.Chain)
	}
	var lost []int32
	if task.GetState() == v1.TaskLost {
		lost = append(lost, task.GetAttempt())
	}
	for _, a := range task.GetAttempts() {
		if a.GetState() == v1.TaskLost && task.GetState() != v1.TaskCompleted && !slices.Contains(lost, a.GetAttempt()) {
			lost = append(lost, a.GetAttempt())
		}
	}
	for generation := range req.GetGeneration() {
		for _, attempt := range lost {
			keys = append(keys, storekey.Result(home, generation, name, attempt))
		}
	}
	return keys
}

// reopenedInstance returns the task to keep of an instance. The definition has its type and its parents, and the fields that it
// clears are kept elsewhere in the state or derived from it.
func reopenedInstance(i *v1.Instance) *v1.Task {
	t := v1.InstanceTask(nil, i)
	t.CreatedAt, t.DeadLetteredAt, t.Held, t.Notice = nil, nil, false, ""
	if t.GetCompletedAt() == nil {
		t.State = v1.TaskCancelled
	}
	return t
}

// load reads a message from the store. The error is non-retryable if the value is missing or unreadable.
func load(ctx context.Context, s *store.Store, key string, m proto.Message) error {
	err := s.AwaitMessage(ctx, key, m, store.Arrival)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("%s is not in the store", key), "not_found", err)
	case errors.Is(err, store.ErrUnreadable):
		return temporal.NewNonRetryableApplicationError(err.Error(), "unreadable", err)
	}
	return err
}

// loadOfRun reads a part of a run from the store. If a newer program has written it, the error is retryable, so that the run waits
// for such a program.
func loadOfRun(ctx context.Context, s *store.Store, key string, m proto.Message) error {
	if err := load(ctx, s, key, m); err != nil {
		return err
	}
	return historyv1.CheckKnown(key, m)
}
