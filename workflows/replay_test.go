package workflows_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"switchyard/workflows/election"
	"switchyard/workflows/environment"
	"switchyard/workflows/limits"
	"switchyard/workflows/lock"
	"switchyard/workflows/names"
	"switchyard/workflows/node"
	"switchyard/workflows/notify"
	"switchyard/workflows/run"
)

// replayer registers the workflows with the limits under which a history was recorded, which are in a file beside it.
func replayer(t *testing.T, history string) worker.WorkflowReplayer {
	t.Helper()
	var limits limits.Run
	text, err := os.ReadFile(strings.TrimSuffix(history, ".json") + ".limits")
	if err == nil {
		limitsOf := json.NewDecoder(bytes.NewReader(text))
		limitsOf.DisallowUnknownFields() // a renamed limit would be ignored otherwise
		err = limitsOf.Decode(&limits)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	// A busy machine may need more than the second after which a replay counts as a deadlock.
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true})
	if err != nil {
		t.Fatal(err)
	}
	r.RegisterWorkflowWithOptions(run.Runner{Limits: limits}.Run, workflow.RegisterOptions{Name: names.RunWorkflow})
	r.RegisterWorkflowWithOptions(run.Runner{Limits: limits}.Run, workflow.RegisterOptions{Name: names.FanOutWorkflow})
	r.RegisterWorkflowWithOptions(node.Registrar{}.Node, workflow.RegisterOptions{Name: names.NodeWorkflow})
	r.RegisterWorkflowWithOptions(lock.Locker{}.Lock, workflow.RegisterOptions{Name: names.LockWorkflow})
	r.RegisterWorkflowWithOptions(environment.Environment, workflow.RegisterOptions{Name: names.EnvironmentWorkflow})
	r.RegisterWorkflowWithOptions(notify.Notify, workflow.RegisterOptions{Name: names.NotifyWorkflow})
	r.RegisterWorkflowWithOptions(election.Leader, workflow.RegisterOptions{Name: names.LeaderWorkflow})
	return r
}

// A history that does not replay means that the workflow code has changed its behaviour or is not deterministic. After an
// intended change, dev/record-histories.sh records all histories again.
func TestReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/histories/*.json")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d recorded histories (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, "testdata/histories/"), func(t *testing.T) {
			t.Parallel()
			text, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer text.Close()
			history, err := client.HistoryFromJSON(text, client.HistoryJSONOptions{})
			if err != nil {
				t.Fatal(err)
			}
			// The IDs of children begin with that of the run.
			id := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
			err = replayer(t, file).ReplayWorkflowHistoryWithOptions(nil, history,
				worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id}})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A workflow that would behave differently does not pass.
func TestReplayNotices(t *testing.T) {
	t.Parallel()
	const file = "testdata/histories/diamond.json"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]*strings.Replacer{
		"another task":     strings.NewReplacer("left#1", "left#2"),
		"another activity": strings.NewReplacer(`"name":"Execute"`, `"name":"Executed"`, `"name": "Execute"`, `"name": "Executed"`),
	} {
		t.Run(name, func(t *testing.T) {
			changed := change.Replace(string(text))
			if changed == string(text) {
				t.Fatal("nothing to change")
			}
			history, err := client.HistoryFromJSON(strings.NewReader(changed), client.HistoryJSONOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := replayer(t, file).ReplayWorkflowHistory(nil, history); err == nil {
				t.Error("replayed")
			}
		})
	}
}
