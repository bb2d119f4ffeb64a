package workers

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor/fake"
	"switchyard/activities/registry"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// record is the folder for the histories of the replay test in package workflows; dev/record-histories.sh sets it.
var record = flag.String("record", "", "folder to record histories in")

// recordedLimits holds the limits for the recorded histories whose names begin with "continued".
var recordedLimits = limits.Run{HistoryEvents: 60}

// TestHistoriesReplay checks that fresh histories replay. The recorded histories come from this test.
func TestHistoriesReplay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		document string
		script   script
		late     bool
		cancel   bool
	}{
		"simple": {document: `{name: simple, tasks: {only: {type: shell, spec: {command: x}}}}`},
		"diamond": {document: `{name: diamond, tasks: {top: {type: shell, spec: {command: x}},
			left: {type: shell, spec: {command: x}, dependsOn: [top]}, right: {type: shell, spec: {command: x}, dependsOn: [top]},
			bottom: {type: shell, spec: {command: x}, dependsOn: [left, right]}}}`},
		"retry": {document: `{name: retry, tasks: {flaky: {type: shell, spec: {command: x}, retry: {backoffMs: 5}},
			dead: {type: shell, spec: {command: x}, retry: {maxRetries: 1, backoffMs: 5}}, below: {type: shell, spec: {command: x}, dependsOn: [dead]}}}`,
			script: script{"flaky": {fake.Exit(1), {}}, "dead": {fake.Exit(1)}}},
		"conditions": {document: `{name: conditions, context: {go: true}, tasks: {test: {type: shell, spec: {command: x}},
			yes: {type: shell, spec: {command: x}, dependsOn: [test], condition: "parent.test.exitCode == 0 && workflow.context.go"},
			no: {type: shell, spec: {command: x}, dependsOn: [test], condition: parent.test.exitCode == 1},
			wrong: {type: shell, spec: {command: x}, dependsOn: [test], condition: parent.test.output.none == 1.0}}}`,
			script: script{"test": {{ContextUpdate: `{"more": 1}`, Output: `{"n": 1}`}}}},
		"cancelled": {document: `{name: cancelled, tasks: {a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]}}}`,
			script: script{"a": {{Block: true}}}, cancel: true},
		"waiting": {document: `{name: waiting, tasks: {a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]}}}`, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := shared(t).workers(t, test.script)
			if !test.late {
				c.start("n")
				c.do(`{name: warm, tasks: {x: {type: shell, spec: {command: x}}}}`)
			}
			h := c.submit(c.input(test.document))
			if test.late {
				h.until("a", func(task *v1.Task) bool { return task.GetError() != "" })
				c.start("n")
			}
			if test.cancel {
				c.running("a")
				h.signal(nil)
			}
			h.wait()
			replay(t, name, limits.Run{}, h.history(""))
		})
	}
}

// TestHistoriesOfTheFleetReplay replays the registry entry of a node through everything that can happen to one, and the
// election.
func TestHistoriesOfTheFleetReplay(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{})
	c := y.workers(t, nil)
	reg, name := registry.New(c.conn), c.name("n")
	entry := &handle{workerSet: c, id: names.NodeWorkflowID(name)}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	n := c.start("n")
	must(reg.Drain(t.Context(), name, &v1.NodeDrain{Reason: "repair"}))
	eventually(t, "nothing is left", func() bool {
		got, err := reg.Get(t.Context(), name)
		return err == nil && got.GetDrained()
	})
	must(reg.Undrain(t.Context(), name))
	must(reg.Drain(t.Context(), name, &v1.NodeDrain{Deadline: timestamppb.Now()}))
	must(reg.Undrain(t.Context(), name)) // cancels the drain, unless nothing was left to drain
	c.do(`{name: on, tasks: {x: {type: shell, spec: {command: x}}}}`)
	n.Stop()
	c.state(name, "offline")
	must(reg.Drain(t.Context(), name, &v1.NodeDrain{}))
	n = c.start("n")
	must(reg.Undrain(t.Context(), name))
	n.Stop()
	c.state(name, "offline")
	// One incarnation leaves before its first heartbeat, and another one is silent.
	must(reg.Register(t.Context(), &v1.NodeRegistration{Name: name, Incarnation: "brief", OfflineAfter: durationpb.New(limit)}))
	must(nil, reg.Leave(t.Context(), name, "brief"))
	c.state(name, "offline")
	must(reg.Register(t.Context(), &v1.NodeRegistration{Name: name, Incarnation: "silent", OfflineAfter: durationpb.New(time.Second)}))
	c.state(name, "offline")
	must(nil, reg.Remove(t.Context(), name))
	eventually(t, "the entry is closed", func() bool { return !entry.open() })
	replay(t, "node", limits.Run{}, entry.history(""))

	election := &handle{workerSet: c, id: names.LeaderWorkflowID}
	replay(t, "leader", limits.Run{}, election.history(""))
}

func TestHistoriesOfManyExecutionsReplay(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: recordedLimits})
	c := y.workers(t, script{"t03": {fake.Exit(1), {}}, "t05": {{ContextUpdate: "n=5", Output: "big=1"}}})
	c.start("n", func(cfg *NodeConfig) { cfg.MaxParallel = 1 })
	def := &v1.Definition{Name: "continued", Tasks: map[string]*v1.TaskDefinition{}}
	one := int32(1)
	for i := range 16 {
		task := shellTask()
		if i > 0 {
			task = shellTask(fmt.Sprintf("t%02d", i-1))
		}
		task.Retry = &v1.RetryPolicy{BackoffMs: &one}
		def.Tasks[fmt.Sprintf("t%02d", i)] = task
	}
	h := c.submit(c.inputOf(def))
	want(t, h.wait(), "completed", nil)
	executions := h.executions()
	for i, id := range executions {
		replay(t, fmt.Sprintf("continued-%d", len(executions)-i), recordedLimits, h.history(id))
	}
}

// replay replays a history with the workflows, and records it if the flag is set.
func replay(t *testing.T, name string, of limits.Run, events []*historypb.HistoryEvent) {
	t.Helper()
	// The SDK merges updates of search attributes into the first event of a replay, so the replay gets copies.
	replayed := make([]*historypb.HistoryEvent, len(events))
	for i, e := range events {
		replayed[i] = proto.CloneOf(e)
	}
	if err := (ControlConfig{limits: of}).replayHistory(replayed); err != nil {
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
