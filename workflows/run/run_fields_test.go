package run

import (
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/limits"
	"switchyard/workflows/view"
)

// startTime is the time at which the runs of the tests start.
var startTime = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// newBegunRun returns a run that has begun. No Temporal environment is behind it.
func newBegunRun(t *testing.T, def *v1.Definition) *run {
	t.Helper()
	graph, err := dag.NewGraph(def, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := &run{
		Config:    flight.Config{RunID: "run", Self: "run", Chain: "chain", First: "first", Original: "original", Limits: limits.Run{}.WithDefaults(), Input: &historyv1.RunInput{Definition: def}},
		selfChain: "chain",
		now:       func() time.Time { return startTime },
		graph:     graph, core: dag.New(graph),
	}
	x.received, x.commands = x.Input, command.New(nil)
	x.records = flight.NewRecords(nil)
	x.flight, x.fanOuts = flight.New(x.Config, x.core, x.records), fanout.New(x.Config, x.core, x.records, &structpb.Struct{})
	x.settling = map[int64]flight.Effect{}
	x.log = eventlog.New(x.core.Name, x.eventID)
	x.status = view.New(x.Self, x.Input, graph, x.core, x.flight, x.records, x.log, startTime)
	x.commands.Facts = command.Facts{Core: x.core, Records: x.records, Flight: x.flight, FanOuts: x.fanOuts}
	return x
}

// apply applies events to the core and shows the changed tasks.
func apply(x *run, d dag.Decisions) dag.Decisions {
	x.status.AddInstances()
	for _, i := range d.Changed {
		x.status.Update(i, x.now())
	}
	return d
}

// tasks returns a definition with the given tasks.
func tasks(all map[string]*v1.TaskDefinition) *v1.Definition {
	return &v1.Definition{Name: "work", Tasks: all}
}

// newTestEnvironment returns an environment for workflow code. Its limits suit a busy machine.
func newTestEnvironment() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
	return env
}

// kept names, for each field of a run that outlives an execution, the field of RunState or TaskState that carries it, and
// for every other field how the next execution gets by without it.
var kept = map[string]string{
	"now":       "of this execution",
	"awaiting":  "started again",
	"givenUp":   "awaited before",
	"core":      "TaskState.task",
	"fanOuts":   "TaskState.partitions",
	"settling":  "empty when the run continues as new",
	"graph":     "rebuilt from the definition",
	"received":  "in the input of the next execution",
	"Config":    "rebuilt from the input and the workflow's info",
	"selfChain": "rebuilt from the input and the workflow's info",
	"ctx":       "of this execution",
	"calls":     "what is still watched is started again; the next execution notices an outage with its next call",
	"root":      "of this execution",
	"log":       "RunState.event_slices",
	"flight":    "TaskState.detached_attempt",
	"children":  "TaskState.child_first",
	"cancels":   "of this execution",
	"timers":    "started again",
	"records":   "TaskState.task",
	"status":    "TaskState.task",
	"commands":  "RunState.approval",
	"queue":     "empty when the run continues as new",
	"steering":  "zero when the run continues as new",
	"updates":   "of this history",
	"signals":   "of this history",
	"waiting":   "RunState.waiting",
	"inFinally": "RunState.finally",
	"draining":  "of this execution: it is the reason to continue as new",
	"events":    "empty when the run continues as new",
	"woken":     "false when the run continues as new",
	"refusal":   "of this execution",
	"fleet":     "asked for again",
	"untold":    "in the outbox before the execution ends",
	"shown":     "read from visibility",
	"wanted":    "read from visibility",
	"history":   "of this history",
	"uncached":  "empty after each round",
	"data":      "stored again; tasks that wait for an expression are asked about again",
}

// Every field of a run is either carried to the next execution or can be rebuilt there.
func TestRunForgetsNoField(t *testing.T) {
	t.Parallel()
	messages := map[string]protoreflect.FieldDescriptors{
		"RunState":  (&historyv1.RunState{}).ProtoReflect().Descriptor().Fields(),
		"TaskState": (&historyv1.TaskState{}).ProtoReflect().Descriptor().Fields(),
	}
	left := maps.Clone(kept)
	for i := range reflect.TypeFor[run]().NumField() {
		field := reflect.TypeFor[run]().Field(i).Name
		how, ok := left[field]
		if !ok {
			t.Errorf("nothing is known of %s after continue-as-new", field)
			continue
		}
		delete(left, field)
		message, carrier, ok := strings.Cut(how, ".")
		if fields := messages[message]; ok && fields != nil && fields.ByName(protoreflect.Name(carrier)) == nil {
			t.Errorf("%s is to be in %s, which does not exist", field, how)
		}
	}
	for field := range left {
		t.Errorf("%s does not exist", field)
	}
}
