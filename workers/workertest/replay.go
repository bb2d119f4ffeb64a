package workertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"switchyard/workers"
	"switchyard/workflows/election"
	"switchyard/workflows/environment"
	"switchyard/workflows/explain"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
	"switchyard/workflows/notify"
	"switchyard/workflows/run"
)

// replayHistory replays a history with the workflows of a control worker.
func replayHistory(cfg workers.ControlConfig, events []*historypb.HistoryEvent) error {
	// A busy machine may exceed the second after which a replay counts as a deadlock.
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true})
	if err != nil {
		return err
	}
	r.RegisterWorkflowWithOptions(run.Runner{Limits: cfg.Limits}.Run, workflow.RegisterOptions{Name: names.RunWorkflow})
	r.RegisterWorkflowWithOptions(run.Runner{Limits: cfg.Limits}.Run, workflow.RegisterOptions{Name: names.FanOutWorkflow})
	r.RegisterWorkflowWithOptions(cfg.Registrar.Node, workflow.RegisterOptions{Name: names.NodeWorkflow})
	r.RegisterWorkflowWithOptions(cfg.Locker.Lock, workflow.RegisterOptions{Name: names.LockWorkflow})
	r.RegisterWorkflowWithOptions(election.Leader, workflow.RegisterOptions{Name: names.LeaderWorkflow})
	r.RegisterWorkflowWithOptions(environment.Environment, workflow.RegisterOptions{Name: names.EnvironmentWorkflow})
	r.RegisterWorkflowWithOptions(notify.Notify, workflow.RegisterOptions{Name: names.NotifyWorkflow})
	r.RegisterWorkflowWithOptions(explain.Explain, workflow.RegisterOptions{Name: names.ExplainWorkflow})
	// The IDs of children begin with the ID of the run.
	id := events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
	return r.ReplayWorkflowHistoryWithOptions(nil, &historypb.History{Events: events},
		worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id}})
}

// replayAll replays every history on the server of a cluster, so that each test also checks determinism: a run whose
// history is replayed, after a takeover or for a query, must take the same decisions.
func (y *Cluster) replayAll(ctx context.Context) error {
	var wrong []error
	req := &workflowservice.ListWorkflowExecutionsRequest{}
	for {
		var res *workflowservice.ListWorkflowExecutionsResponse
		err := inTime(func() (err error) {
			res, err = y.Conn.ListWorkflow(ctx, req)
			return err
		})
		if err != nil {
			return fmt.Errorf("list the workflows: %w", err)
		}
		for _, e := range res.GetExecutions() {
			if !isReplayable(e.GetType().GetName()) {
				continue
			}
			id, execution := e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId()
			var events []*historypb.HistoryEvent
			var begun bool
			err := inTime(func() (err error) {
				events, begun, err = y.events(ctx, id, execution)
				return err
			})
			if err == nil && begun {
				err = replayHistory(y.Config, events)
			}
			if err != nil {
				wrong = append(wrong, fmt.Errorf("replay %s, execution %s of %s: %w", e.GetType().GetName(), execution, id, err))
			}
		}
		if req.NextPageToken = res.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return errors.Join(wrong...)
		}
	}
}

// isReplayable reports whether a workflow belongs to Switchyard and not to a test.
func isReplayable(name string) bool {
	switch name {
	case names.RunWorkflow, names.FanOutWorkflow, names.NodeWorkflow, names.LockWorkflow, names.LeaderWorkflow, names.ExplainWorkflow, names.NotifyWorkflow:
		return true
	}
	return false
}

// events returns the history of an execution, and reports whether its first workflow task has completed.
func (y *Cluster) events(ctx context.Context, id, execution string) (events []*historypb.HistoryEvent, begun bool, err error) {
	it := y.Conn.GetWorkflowHistory(ctx, id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			return nil, false, err
		}
		begun = begun || e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
		events = append(events, e)
	}
	return events, begun, nil
}

// record is the folder for the histories of the replay test in package workflows; dev/record-histories.sh sets it.
var record = flag.String("record", "", "folder to record histories in")

// Replay replays a history with the workflows under the limits with which it was made. With the flag -record it writes the
// history and its limits to the folder of recorded histories, under the given name.
func Replay(t *testing.T, name string, of limits.Run, events []*historypb.HistoryEvent) {
	t.Helper()
	// The SDK merges updates of search attributes into the first event of a replay, so the replay gets copies.
	replayed := make([]*historypb.HistoryEvent, len(events))
	for i, e := range events {
		replayed[i] = proto.CloneOf(e)
	}
	if err := replayHistory(workers.ControlConfig{Limits: of}, replayed); err != nil {
		t.Errorf("history %s: %v", name, err)
	}
	if *record == "" {
		return
	}
	lines := make([][]byte, 0, len(events))
	for _, e := range events {
		line, err := protojson.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	text := append([]byte("{\"events\":[\n"), bytes.Join(lines, []byte(",\n"))...)
	if err := os.MkdirAll(*record, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*record, name+".json"), append(text, "\n]}\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if of == (limits.Run{}) {
		return
	}
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*record, name+".limits"), append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
