package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// Signals that control scriptedRun.
const (
	setSignal     = "set"     // *historyv1.StatusResponse: tasks, records, claims, context, error and state to show
	executeSignal = "execute" // *historyv1.ClaimRef: starts an activity Execute on the queue in its outcome
	eventsSignal  = "events"  // *historyv1.EventsResponse: events to return, and the number of parts stored before them
	endSignal     = "end"     // string: completed, failed, cancelled, bare, large, continued
	panicSignal   = "panic"   // string: the workflow task keeps failing with this panic
	childSignal   = "child"   // string: id of a child to start, a Run that outlives this one
)

// stateKey is the search attribute with the state that lists use.
var stateKey = temporal.NewSearchAttributeKeyKeyword(names.StateAttribute)

// answerTasks and answerEvents are the numbers of tasks and events in a response of scriptedRun. They are
// small, so a few already span several responses.
const (
	answerTasks  = 3
	answerEvents = 2
	// answerExplained is the number of tasks in a response of the placement queue.
	answerExplained = 2
)

// scriptedRun stands in for the Run workflow. Signals control what it shows and does.
func scriptedRun(ctx workflow.Context, in *historyv1.RunInput) (*historyv1.StatusResponse, error) {
	in, err := definition.Unpack(in)
	if err != nil {
		return nil, err
	}
	s := newScript(ctx, in)
	err = errors.Join(
		workflow.UpsertTypedSearchAttributes(ctx, stateKey.ValueSet(s.status.Run.State)),
		workflow.SetQueryHandler(ctx, names.StatusQuery, s.answer),
		workflow.SetQueryHandler(ctx, names.EventsQuery, s.answerEventsQuery),
		workflow.SetUpdateHandlerWithOptions(ctx, names.RetryUpdate, s.retry, workflow.UpdateHandlerOptions{Validator: s.mayRetry}),
		s.handleCommands(ctx),
	)
	if err != nil {
		return nil, err
	}
	var end string
	selector := workflow.NewSelector(ctx)
	onSignal(ctx, selector, setSignal, func(set *historyv1.StatusResponse) {
		s.set(set)
		s.count(ctx)
		if state := set.GetRun().GetState(); state != "" {
			s.status.Run.State = state
			_ = workflow.UpsertTypedSearchAttributes(ctx, stateKey.ValueSet(state))
		}
	})
	onSignal(ctx, selector, eventsSignal, func(events *historyv1.EventsResponse) { s.events = events })
	onSignal(ctx, selector, executeSignal, func(ref *historyv1.ClaimRef) {
		workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			TaskQueue:           ref.GetOutcome(),
			ActivityID:          names.AttemptID(ref.GetTask(), ref.GetClaim()),
			StartToCloseTimeout: time.Hour,
			HeartbeatTimeout:    time.Hour,
			RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		}), names.ExecuteActivity)
	})
	onSignal(ctx, selector, panicSignal, func(text *string) { panic(*text) })
	onSignal(ctx, selector, childSignal, func(id *string) {
		workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID: *id, ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
		}), names.RunWorkflow, in)
	})
	onSignal(ctx, selector, names.CancelSignal, func(c *historyv1.RunCommand) {
		if phrase.IsInFinally(s.status.Run.Error) && !c.GetNow() && c.GetRequestId() == "" {
			return
		}
		s.status.Run.Error, end = c.GetBy()+c.GetReason(), "cancelled"
	})
	onSignal(ctx, selector, endSignal, func(how *string) { end = *how })
	for end == "" || selector.HasPending() {
		selector.Select(ctx)
	}
	return s.end(ctx, in, end)
}

// onSignal makes a selector call do with each signal of a name.
func onSignal[T any](ctx workflow.Context, selector workflow.Selector, name string, do func(*T)) {
	selector.AddReceive(workflow.GetSignalChannel(ctx, name), func(ch workflow.ReceiveChannel, _ bool) {
		var value T
		ch.Receive(ctx, &value)
		do(&value)
	})
}

type script struct {
	status *historyv1.StatusResponse
	at     map[string]int64 // revision of the last change of each task
	events *historyv1.EventsResponse
	// commanded holds the tasks that have received an update.
	commanded map[string]bool
}

func newScript(ctx workflow.Context, in *historyv1.RunInput) *script {
	info := workflow.GetInfo(ctx)
	s := &script{
		status: &historyv1.StatusResponse{
			Run: &v1.Run{
				Id: info.WorkflowExecution.ID, Name: in.GetDefinition().GetName(), State: "running",
				Tasks: map[string]*v1.Task{}, Context: in.GetDefinition().GetContext(), Input: in.GetInput(),
				Generation: in.GetGeneration(), CreatedAt: timestamppb.New(info.WorkflowStartTime), Batch: in.GetBatch(),
			},
			Records: map[string]string{}, Claims: map[string]int32{}, Revision: in.GetState().GetRevision(),
			TaskCount: int32(len(in.GetDefinition().GetTasks())),
		},
		at: map[string]int64{}, commanded: map[string]bool{},
	}
	tasks := map[string]*v1.Task{}
	for name, def := range in.GetDefinition().GetTasks() {
		tasks[name] = &v1.Task{State: "pending", Type: def.GetType(), DependsOn: def.GetDependsOn()}
	}
	for _, name := range in.GetRetry() {
		tasks[name].State = "queued"
	}
	for _, name := range in.GetRerun().GetFrom() {
		tasks[name].Reason = "again"
	}
	for name, runState := range in.GetState().GetTasks() {
		tasks[name] = runState.GetTask()
	}
	s.set(&historyv1.StatusResponse{Run: &v1.Run{Tasks: tasks}})
	return s
}

func (s *script) set(set *historyv1.StatusResponse) {
	for _, name := range workflow.DeterministicKeys(set.GetRun().GetTasks()) {
		s.status.Revision++
		s.at[name] = s.status.Revision
		s.status.Run.Tasks[name] = set.Run.Tasks[name]
	}
	if set.GetRun().GetContext() != nil {
		s.status.Revision++
		s.status.Run.Context = set.Run.Context
	}
	s.status.Run.Error = set.GetRun().GetError()
	for name, record := range set.GetRecords() {
		s.status.Records[name] = record
	}
	s.status.Chain = cmp.Or(set.GetChain(), s.status.Chain)
	if set.GetItems() != nil {
		s.status.Items = set.Items
	}
	if set.GetPartitions() != nil {
		s.status.Partitions = set.Partitions
	}
	for name, claim := range set.GetClaims() {
		s.status.Claims[name] = claim
	}
}

func (s *script) answer(req *historyv1.StatusRequest) (*historyv1.StatusResponse, error) {
	res := proto.CloneOf(s.status)
	res.Run.Tasks = map[string]*v1.Task{}
	for since := req.GetSince(); ; {
		var next string
		for name, at := range s.at {
			if at > since && (next == "" || at < s.at[next]) {
				next = name
			}
		}
		if next == "" {
			res.Revision = s.status.Revision
			return res, nil
		}
		if len(res.Run.Tasks) == answerTasks {
			res.Revision, res.More = since, true
			return res, nil
		}
		since = s.at[next]
		res.Run.Tasks[next] = s.status.Run.Tasks[next]
	}
}

// answerEventsQuery answers the query for events.
func (s *script) answerEventsQuery(req *historyv1.EventsRequest) (*historyv1.EventsResponse, error) {
	rest := s.events.GetEvents()[min(int(req.GetOffset()), len(s.events.GetEvents())):]
	res := &historyv1.EventsResponse{Slices: s.events.GetSlices(), Events: rest[:min(answerEvents, len(rest))]}
	res.More = len(rest) > answerEvents
	return res, nil
}

// mayRetry validates the update that puts back a dead letter; retry applies it.
func (s *script) mayRetry(req *historyv1.RetryTaskRequest) error {
	if s.status.Run.Tasks[req.GetTask()] == nil {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("task %q: unknown task", req.GetTask()), names.UnknownTaskError, nil)
	}
	if state := s.status.Run.Tasks[req.GetTask()].GetState(); state != "dead_letter" {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("task %s is %s", req.GetTask(), state), names.TaskStateError, nil)
	}
	return nil
}

func (s *script) retry(ctx workflow.Context, req *historyv1.RetryTaskRequest) error {
	s.set(&historyv1.StatusResponse{Run: &v1.Run{Tasks: map[string]*v1.Task{req.GetTask(): {State: "queued", Type: "shell"}}}})
	s.count(ctx)
	return nil
}

// count updates the number of dead letters in visibility.
func (s *script) count(ctx workflow.Context) {
	n := int64(0)
	for _, task := range s.status.Run.Tasks {
		if task.GetState() == "dead_letter" {
			n++
		}
	}
	key := temporal.NewSearchAttributeKeyInt64(names.DeadLettersAttribute)
	if _, known := workflow.GetTypedSearchAttributes(ctx).GetInt64(key); known || n > 0 {
		_ = workflow.UpsertTypedSearchAttributes(ctx, key.ValueSet(n))
	}
}

// scriptedExplain stands in for the Explain workflow. Its response reflects the request.
func scriptedExplain(_ workflow.Context, req *historyv1.ExplainRequest) (*historyv1.ExplainResponse, error) {
	if len(req.GetMore()) > 0 {
		res := &historyv1.ExplainResponse{}
		for _, r := range req.GetMore()[:min(len(req.GetMore()), answerExplained)] {
			res.More = append(res.More, explained(r))
		}
		return res, nil
	}
	return explained(req.GetRequest()), nil
}

// inQueue is the claim that the scripted placement queue holds.
const inQueue = 77

// explained returns the verdict of the scripted placement queue: node a accepts every task without a GPU.
func explained(r *historyv1.TaskRequest) *historyv1.ExplainResponse {
	return &historyv1.ExplainResponse{
		Held:   r.GetClaim() == inQueue,
		Reason: fmt.Sprintf("%s#%d of type %s, %d labels", r.GetTask(), r.GetClaim(), r.GetType(), len(r.GetConstraints().GetNodeLabels())),
		Nodes:  []*v1.NodeVerdict{{Name: "a", Feasible: !r.GetConstraints().GetRequiresGpu(), Score: 87.5, Parts: []*v1.ScorePart{{Name: "cpu", Value: 87.5}}}, {Name: "b", Reasons: []string{"it is full"}}},
	}
}

func (s *script) end(ctx workflow.Context, in *historyv1.RunInput, how string) (*historyv1.StatusResponse, error) {
	run := s.status.Run
	switch how {
	case "completed":
		run.State = "completed"
		return s.status, nil
	case "rejected":
		run.State, run.Reason = "rejected", "approval"
		if err := workflow.UpsertTypedSearchAttributes(ctx, stateKey.ValueSet("rejected")); err != nil {
			return nil, err
		}
		return nil, temporal.NewNonRetryableApplicationError("rejected", "rejected", nil, s.status)
	case "cancelled":
		run.State = "cancelled"
		return nil, temporal.NewCanceledError(s.status)
	case "bare":
		return nil, temporal.NewNonRetryableApplicationError("it broke", "system", nil)
	case "large":
		run.State, run.Tasks = "completed", nil
		return s.status, nil
	case "continued":
		next := proto.CloneOf(in)
		next.State = &historyv1.RunState{Revision: s.status.Revision, Tasks: map[string]*historyv1.TaskState{}}
		for name, task := range run.Tasks {
			next.State.Tasks[name] = &historyv1.TaskState{Task: task}
		}
		return nil, workflow.NewContinueAsNewError(ctx, names.RunWorkflow, next)
	default:
		run.State, run.Reason = "failed", "task_failed"
		return nil, temporal.NewNonRetryableApplicationError(run.Error, "task_failed", nil, s.status)
	}
}

// set shows a task of a scripted run in a state, with a claim.
func set(t *testing.T, run, task string, claim int32, shown *v1.Task) {
	t.Helper()
	signal(t, run, setSignal, &historyv1.StatusResponse{
		Run:    &v1.Run{Tasks: map[string]*v1.Task{task: shown}},
		Claims: map[string]int32{task: claim},
	})
}

func end(t *testing.T, run, how string) {
	t.Helper()
	signal(t, run, endSignal, how)
	waitClosed(t, run)
}

// endByForce terminates a run.
func endByForce(t *testing.T, run, reason string) {
	t.Helper()
	if err := temporalClient.TerminateWorkflow(t.Context(), run, "", reason); err != nil {
		t.Fatal(err)
	}
}

func signal(t *testing.T, run, name string, arg any) {
	t.Helper()
	if err := temporalClient.SignalWorkflow(t.Context(), run, "", name, arg); err != nil {
		t.Fatal(err)
	}
}

func waitClosed(t *testing.T, run string) {
	t.Helper()
	_ = temporalClient.GetWorkflow(t.Context(), run, "").Get(t.Context(), nil)
	if t.Context().Err() != nil {
		t.Fatal("the run did not close")
	}
}

// eventually waits until check holds.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for !check() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: it did not happen", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
