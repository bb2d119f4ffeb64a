package run

import (
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
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

// newExecution returns what the components of a run share once the run has begun. No Temporal environment is behind it.
func newExecution(t *testing.T, def *v1.Definition) *run {
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
	x.status = view.New(x.Self, x.Input, graph, x.flight, x.records, x.log, startTime)
	x.commands.Facts = command.Facts{Core: x.core, Records: x.records, Flight: x.flight, FanOuts: x.fanOuts}
	return x
}

// apply applies events to the core and shows the changed tasks.
func apply(x *run, d dag.Decisions) dag.Decisions {
	x.status.AddInstances(x.core)
	for _, i := range d.Changed {
		x.status.Update(i, x.core.Task(i), x.now())
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

// forEachComponent calls a function with every component of a run, by name. It also visits the run.
func forEachComponent(t *testing.T, visit func(name string, component reflect.Value)) {
	t.Helper()
	env := newTestEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		seen := map[string]reflect.Value{}
		var walk func(v reflect.Value)
		walk = func(v reflect.Value) {
			for v.Kind() == reflect.Interface {
				v = v.Elem()
			}
			if v.Kind() == reflect.Slice {
				for i := range v.Len() {
					walk(v.Index(i))
				}
				return
			}
			if !isComponent(v) || seen[v.Type().Elem().Name()].IsValid() {
				return
			}
			seen[v.Type().Elem().Name()] = v.Elem()
			for i := range v.Elem().NumField() {
				walk(v.Elem().Field(i))
			}
		}
		walk(reflect.ValueOf(newRun(ctx, &historyv1.RunInput{}, limits.Run{}.WithDefaults())))
		for _, name := range slices.Sorted(maps.Keys(seen)) {
			visit(name, seen[name])
		}
		return nil
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

// isComponent reports whether a value points to a struct of this package.
func isComponent(v reflect.Value) bool {
	return v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct && v.Elem().Type().PkgPath() == reflect.TypeFor[run]().PkgPath()
}

// newRun gives every component the others that it needs, and everything that a component keeps in a map has one.
func TestEveryComponentIsComplete(t *testing.T) {
	t.Parallel()
	later := []string{
		"run.graph", "run.core", "run.records", "run.status", "run.log", "run.fanOuts",
		"run.flight", "run.data", "run.refusal", "run.awaiting",
	}
	found := 0
	forEachComponent(t, func(name string, c reflect.Value) {
		found++
		for i := range c.NumField() {
			field := name + "." + c.Type().Field(i).Name
			switch f := c.Field(i); f.Kind() {
			case reflect.Interface, reflect.Func, reflect.Map, reflect.Pointer:
				if f.IsNil() && !slices.Contains(later, field) {
					t.Errorf("%s is missing", field)
				}
			}
		}
	})
	if found < 1 {
		t.Errorf("only %d components were found", found)
	}
}

// kept names, for each field of a component that outlives an execution, the field of RunState or TaskState that carries it, and
// for every other field how the next execution gets by without it.
var kept = map[string]string{
	"run.core":      "TaskState.task",
	"run.fanOuts":   "TaskState.partitions",
	"run.settling":  "empty when the run continues as new",
	"run.graph":     "rebuilt from the definition",
	"run.received":  "in the input of the next execution",
	"run.Config":    "rebuilt from the input and the workflow's info",
	"run.selfChain": "rebuilt from the input and the workflow's info",
	"run.ctx":       "of this execution",
	"run.calls":     "what is still watched is started again; the next execution notices an outage with its next call",
	"run.root":      "of this execution",
	"run.log":       "RunState.event_slices",
	"run.flight":    "TaskState.detached_attempt",
	"run.children":  "TaskState.child_first",
	"run.cancels":   "of this execution",
	"run.timers":    "started again",
	"run.records":   "TaskState.task",
	"run.status":    "TaskState.task",
	"run.commands":  "RunState.approval",
	"run.queue":     "empty when the run continues as new",
	"run.steering":  "zero when the run continues as new",
	"run.updates":   "of this history",
	"run.signals":   "of this history",
	"run.waiting":   "RunState.waiting",
	"run.draining":  "of this execution: it is the reason to continue as new",
	"run.events":    "empty when the run continues as new",
	"run.woken":     "false when the run continues as new",
	"run.refusal":   "of this execution",
	"run.shown":     "read from visibility",
	"run.wanted":    "read from visibility",
	"run.history":   "of this history",
	"run.uncached":  "empty after each round",
	"run.data":      "stored again; tasks that wait for an expression are asked about again",
}

// Every field of a component is either carried to the next execution or can be rebuilt there.
func TestComponentsForgetNoField(t *testing.T) {
	t.Parallel()
	messages := map[string]protoreflect.FieldDescriptors{
		"RunState":  (&historyv1.RunState{}).ProtoReflect().Descriptor().Fields(),
		"TaskState": (&historyv1.TaskState{}).ProtoReflect().Descriptor().Fields(),
	}
	left := maps.Clone(kept)
	forEachComponent(t, func(name string, c reflect.Value) {
		for i := range c.NumField() {
			f, field := c.Field(i), name+"."+c.Type().Field(i).Name
			if f.Kind() == reflect.Interface {
				f = f.Elem()
			}
			if f.Kind() == reflect.Func || isComponent(f) {
				continue
			}
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
	})
	for field := range left {
		t.Errorf("%s does not exist", field)
	}
}
