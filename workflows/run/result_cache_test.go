package run

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
)

// A cached result answers a task, unless nothing is cached, the key has no value, the run made the result itself, or its context
// update does not fit.
func TestCachedResultIsReused(t *testing.T) {
	t.Parallel()
	cached := func(run string, updateBytes int) *v1.CachedResult {
		update := &structpb.Struct{Fields: map[string]*structpb.Value{"log": structpb.NewStringValue(strings.Repeat("x", updateBytes))}}
		return &v1.CachedResult{RunId: run, Response: &v1.ExecuteResponse{State: v1.TaskCompleted, Result: &v1.TaskResult{ContextUpdate: update}}}
	}
	for name, test := range map[string]struct {
		answer     *v1.ConditionAnswer
		generation int32
		reused     bool
	}{
		"another run":                 {answer: &v1.ConditionAnswer{Text: "k", Cached: cached("other", 1)}, reused: true},
		"nothing":                     {answer: &v1.ConditionAnswer{Text: "k"}},
		"a key that fails":            {answer: &v1.ConditionAnswer{Error: "no such input"}},
		"the run itself":              {answer: &v1.ConditionAnswer{Text: "k", Cached: cached("run", 1)}, reused: true},
		"the generation before":       {answer: &v1.ConditionAnswer{Text: "k", Cached: cached("run", 1)}, generation: 1},
		"an update that does not fit": {answer: &v1.ConditionAnswer{Text: "k", Cached: cached("other", definition.MaxContextBytes)}},
	} {
		x := newExecution(t, tasks(map[string]*v1.TaskDefinition{"build": {Type: v1.TypeShell, Cache: &v1.Cache{Key: "input.k"}}}))
		x.in.Generation = test.generation
		apply(x, x.core.Start())
		e := &fakeQuestions{}
		rc := &resultCache{execution: x, evaluator: e}
		runs := func() bool { x.flight.Admit(); return x.flight.UnitOf(0) != nil }
		rc.want(0)
		if len(e.asked) != 1 || e.asked[0].kind != asksCache || runs() {
			t.Errorf("%s: asked %v", name, e.asked)
			continue
		}
		e.asked[0].answered(test.answer)
		events := x.takeEvents()
		if reused := len(events) == 1 && events[0] == (dag.Reused{Task: 0, Claim: x.core.Task(0).Claim}); reused != test.reused || reused == runs() {
			t.Errorf("%s: events %v, the task runs: %v", name, events, runs())
		}
		if text := x.records.Of(0).Uncached; strings.Contains(text, "no such input") != (test.answer.GetError() != "") {
			t.Errorf("%s: the task shows %q", name, text)
		}
	}
}
