package orchestrator

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// The size of one answer of Evaluate is bounded, however many questions there are.
func TestEvaluateStopsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, evaluateStopsInTime) // each answer waits for the record
}

func evaluateStopsInTime(t *testing.T) {
	c := newControl(t)
	req := &historyv1.EvaluateRequest{Workflow: &historyv1.WorkflowView{}, Parents: map[string]*historyv1.ParentView{"p": {State: "completed", Record: "runs/r/no-such-record"}}}
	long := strings.Repeat("n", 60)
	for i := range 5000 {
		req.Conditions = append(req.Conditions, &historyv1.Condition{Task: fmt.Sprintf("%s%d", long, i), Expression: "true", References: []string{"p"}})
	}
	asked := 0
	for len(req.Conditions) > 0 {
		res, err := c.Evaluate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(res.GetAnswers()); n == 0 || n > len(req.Conditions) || proto.Size(res) > definition.MaxAnswerBytes+64<<10 {
			t.Fatalf("%d answers of %d bytes to %d conditions", n, proto.Size(res), len(req.Conditions))
		}
		for i, a := range res.GetAnswers() {
			if a.GetTask() != req.Conditions[i].GetTask() || a.GetValue() || !strings.Contains(a.GetError(), "result of p") {
				t.Fatalf("answer %d: %v", i, a)
			}
		}
		req.Conditions = req.Conditions[len(res.GetAnswers()):]
		asked++
	}
	if asked < 2 {
		t.Error("all of it came in one answer")
	}
}

func objectOf(t *testing.T, fields map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask returns the answer to one question of run r-1 of workflow w.
func ask(t *testing.T, c *Control, cond *historyv1.Condition, parents map[string]*historyv1.ParentView) *historyv1.ConditionAnswer {
	t.Helper()
	for name := range parents {
		cond.References = append(cond.References, name)
	}
	res, err := c.Evaluate(t.Context(), &historyv1.EvaluateRequest{
		Conditions: []*historyv1.Condition{cond}, Parents: parents,
		Workflow: &historyv1.WorkflowView{Name: "w", RunId: "r-1", Context: objectOf(t, map[string]any{"channel": "stable"})},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.GetAnswers()) != 1 || res.GetAnswers()[0].GetTask() != cond.GetTask() {
		t.Fatalf("answers: %v", res)
	}
	return res.GetAnswers()[0]
}

func TestEvaluateCount(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	parents := map[string]*historyv1.ParentView{"discover": {State: "completed", Result: &v1.TaskResult{Output: objectOf(t, map[string]any{"count": 3, "name": "n"})}}}
	if a := ask(t, c, &historyv1.Condition{Task: "each", Kind: "count", Expression: "discover.count"}, parents); a.GetCount() != 3 || a.GetError() != "" {
		t.Errorf("answer %v", a)
	}
	for expr, want := range map[string]string{
		"discover.name": `this one is of type string: "n"`, "-1": "negative: -1", "discover.count + 0.5": "3.5, which is not an integer", "100001": "more than 100000",
	} {
		a := ask(t, c, &historyv1.Condition{Task: "each", Kind: "count", Expression: expr}, parents)
		if !strings.Contains(a.GetError(), want) || a.GetCount() != 0 || a.GetBroken() {
			t.Errorf("%s: answer %v, want %q", expr, a, want)
		}
	}
	if a := ask(t, c, &historyv1.Condition{Task: "each", Kind: "sum", Expression: "1"}, nil); !strings.Contains(a.GetError(), `kind "sum"`) {
		t.Errorf("an unknown kind: %v", a)
	}
}

// A small list is in the answer, and a large one in the store. The same question gives the same key.
func TestEvaluateItems(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	var names []any
	for i := range 1000 {
		names = append(names, fmt.Sprintf("file %d of many", i))
	}
	record := storekey.Result("r-1", 0, "discover", 0)
	if err := c.Store.PutMessage(t.Context(), record, &historyv1.ExecuteResponse{State: "completed", Result: &v1.TaskResult{
		Output: objectOf(t, map[string]any{"few": []any{"a", "b"}, "many": names}),
	}}); err != nil {
		t.Fatal(err)
	}
	parents := map[string]*historyv1.ParentView{"discover": {State: "completed", Record: record}}
	few := ask(t, c, &historyv1.Condition{Task: "each", Kind: "items", Expression: "discover.few"}, parents)
	if few.GetCount() != 2 || few.GetItems().GetKey() != "" || len(few.GetItems().GetList().GetValues()) != 2 {
		t.Errorf("few: %v", few)
	}
	many := ask(t, c, &historyv1.Condition{Task: "each", Kind: "items", Expression: "discover.many"}, parents)
	if many.GetCount() != 1000 || many.GetItems().GetList() != nil || !strings.HasPrefix(many.GetItems().GetKey(), storekey.RunPrefix("r-1")) {
		t.Fatalf("many: %v", many)
	}
	if err := storekey.Check(many.GetItems().GetKey()); err != nil {
		t.Error(err)
	}
	list, err := c.Store.AwaitItems(t.Context(), many.GetItems().GetKey(), 0)
	if err != nil || len(list.GetItems()) != 1000 || list.GetItems()[999].GetStringValue() != "file 999 of many" {
		t.Errorf("stored: %v, %v", list, err)
	}
	if again := ask(t, c, &historyv1.Condition{Task: "each", Kind: "items", Expression: "discover.many"}, parents); again.GetItems().GetKey() != many.GetItems().GetKey() {
		t.Errorf("asked again it is %v", again)
	}
	if a := ask(t, c, &historyv1.Condition{Task: "each", Kind: "items", Expression: "workflow.context.channel"}, nil); !strings.Contains(a.GetError(), `foreach must be a list; this one is of type string: "stable"`) {
		t.Errorf("no list: %v", a)
	}
}

func TestEvaluateRetry(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	record := storekey.Result("r-1", 0, "a", 0)
	if err := c.Store.PutMessage(t.Context(), record, &historyv1.ExecuteResponse{State: "failed", Result: &v1.TaskResult{ExitCode: 75, Stderr: "connection reset"}}); err != nil {
		t.Fatal(err)
	}
	const expr = "attempt.exitCode == 75 && attempt.stderr.contains('reset') && attempt.number == 1 && attempt.reason == 'exit_code' && attempt.state == 'failed'"
	for name, attempt := range map[string]*historyv1.AttemptView{
		"here":         {Number: 1, State: "failed", Reason: "exit_code", Result: &v1.TaskResult{ExitCode: 75, Stderr: "connection reset"}},
		"in the store": {Number: 1, State: "failed", Reason: "exit_code", Record: record, Result: &v1.TaskResult{ExitCode: 75}},
	} {
		if a := ask(t, c, &historyv1.Condition{Task: "a", Kind: "retry", Expression: expr, Attempt: attempt}, nil); !a.GetValue() || a.GetError() != "" {
			t.Errorf("%s: %v", name, a)
		}
	}
	if a := ask(t, c, &historyv1.Condition{Task: "a", Kind: "retry", Expression: "attempt.exitCode == 1", Attempt: &historyv1.AttemptView{Record: record}}, nil); a.GetValue() {
		t.Errorf("another exit code: %v", a)
	}
}

func TestEvaluateTemplate(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	spec := objectOf(t, map[string]any{"input": map[string]any{"version": "${{ build.version }}", "n": "${{ input.index + 1.0 }}"}, "workflow": "deploy-${{ workflow.context.channel }}"})
	parents := map[string]*historyv1.ParentView{"build": {State: "completed", Result: &v1.TaskResult{Output: objectOf(t, map[string]any{"version": "1.2"})}}}
	a := ask(t, c, &historyv1.Condition{Task: "child", Kind: "template", Template: spec, Input: objectOf(t, map[string]any{"index": 4})}, parents)
	want := objectOf(t, map[string]any{"input": map[string]any{"version": "1.2", "n": 5}, "workflow": "deploy-stable"})
	if !proto.Equal(a.GetRendered(), want) || a.GetError() != "" {
		t.Errorf("answer %v", a)
	}
	a = ask(t, c, &historyv1.Condition{Task: "child", Kind: "template", Template: objectOf(t, map[string]any{"x": "${{ build.nope }}"})}, parents)
	if !strings.Contains(a.GetError(), "spec.x: ") || !strings.Contains(a.GetError(), "${{ build.nope }}") || a.GetRendered() != nil || a.GetBroken() {
		t.Errorf("an error: %v", a)
	}
	parents["build"].Result.Output = objectOf(t, map[string]any{"version": strings.Repeat("x", maxRenderedBytes)})
	if a = ask(t, c, &historyv1.Condition{Task: "child", Kind: "template", Template: spec, Input: objectOf(t, map[string]any{"index": 4})}, parents); !strings.Contains(a.GetError(), "bytes") || a.GetRendered() != nil {
		t.Errorf("too large: %.200v", a)
	}
}

// Large objects are spread over several answers.
func TestEvaluateLargeAnswers(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	req := &historyv1.EvaluateRequest{Workflow: &historyv1.WorkflowView{Name: "w", RunId: "r-1", Input: objectOf(t, map[string]any{"x": strings.Repeat("x", maxRenderedBytes/2)})}}
	for i := range 5 {
		req.Conditions = append(req.Conditions, &historyv1.Condition{
			Task: fmt.Sprintf("t%d", i), Kind: "template", Template: objectOf(t, map[string]any{"x": "${{ workflow.input.x }}"}),
		})
	}
	for asked := 0; len(req.Conditions) > 0; asked++ {
		res, err := c.Evaluate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(res.GetAnswers()); n == 0 || proto.Size(res) > definition.MaxAnswerBytes+1<<10 || asked > 4 {
			t.Fatalf("%d answers of %d bytes", n, proto.Size(res))
		}
		for i, a := range res.GetAnswers() {
			if a.GetTask() != req.Conditions[i].GetTask() || a.GetError() != "" || a.GetRendered() == nil {
				t.Errorf("answer %d: %.200v", i, a)
			}
		}
		req.Conditions = req.Conditions[len(res.GetAnswers()):]
	}
}

// Expensive expressions do not delay the run, whatever kind of question they belong to.
func TestEvaluateKeepsItsBudget(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	const nested = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, a + b + c + d + e > 0)))))"
	req := &historyv1.EvaluateRequest{Workflow: &historyv1.WorkflowView{Name: "w", RunId: "r-1"}}
	kinds := []string{"", kindCount, kindItems, kindCache, kindRetry, kindTemplate}
	for i := range 1000 {
		cond := &historyv1.Condition{Task: fmt.Sprintf("t%d", i), Kind: kinds[i%len(kinds)], Expression: nested}
		switch cond.GetKind() {
		case kindCount:
			cond.Expression += " ? 1 : 2"
		case kindItems:
			cond.Expression = "[" + nested + "]"
		case kindTemplate:
			cond.Template = objectOf(t, map[string]any{"a": "${{ " + nested + " }}", "b": []any{"${{ " + nested + " }}"}})
		}
		req.Conditions = append(req.Conditions, cond)
	}
	began := time.Now()
	res, err := c.Evaluate(t.Context(), req)
	took := time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	// However slow the machine is, only the answer in progress is still added once the budget is used up.
	if n := len(res.GetAnswers()); n == 0 || n < 1000 && took < evaluateBudget || n == 1000 && took > 30*evaluateBudget {
		t.Errorf("%d answers in %v", n, took)
	}
	for i, a := range res.GetAnswers() {
		if !strings.Contains(a.GetError(), "cost limit") && !strings.Contains(a.GetError(), "deadline") {
			t.Errorf("answer %d: %v", i, a)
		}
	}
}

// A cached result must be complete, young enough and successful. It outlives its run.
func TestCachedResults(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	now := time.Now()
	save := func(key string, age time.Duration, res *historyv1.ExecuteResponse) error {
		return c.SaveCached(t.Context(), &historyv1.SaveCachedRequest{Workflow: "w", Task: "build", Key: key, Result: &historyv1.CachedResult{
			RunId: "r-0", CompletedAt: timestamppb.New(now.Add(-age)), Response: res,
		}})
	}
	look := func(key string, ttl time.Duration) *historyv1.ConditionAnswer {
		return ask(t, c, &historyv1.Condition{Task: "build", Kind: "cache", Expression: key, Ttl: durationpb.New(ttl)}, nil)
	}
	if a := look("'v1'", 0); a.GetText() != "v1" || a.GetCached() != nil || a.GetError() != "" {
		t.Fatalf("before there is any: %v", a)
	}
	small := &historyv1.ExecuteResponse{State: "completed", Node: "n", Result: &v1.TaskResult{Stdout: "out", Output: objectOf(t, map[string]any{"k": "v"}), ContextUpdate: objectOf(t, map[string]any{"c": 1})}}
	if err := save("v1", time.Hour, small); err != nil {
		t.Fatal(err)
	}
	for _, ttl := range []time.Duration{0, 2 * time.Hour} {
		a := look("'v' + '1'", ttl)
		if got := a.GetCached(); got.GetRunId() != "r-0" || !proto.Equal(got.GetResponse(), small) {
			t.Errorf("for %v: %v", ttl, a)
		}
	}
	for name, a := range map[string]*historyv1.ConditionAnswer{
		"too old": look("'v1'", 30*time.Minute), "another key": look("'v2'", 0),
		"another task": ask(t, c, &historyv1.Condition{Task: "test", Kind: "cache", Expression: "'v1'"}, nil),
	} {
		if a.GetCached() != nil || a.GetError() != "" {
			t.Errorf("%s: %v", name, a)
		}
	}
	if a := look("''", 0); !strings.Contains(a.GetError(), "empty") {
		t.Errorf("an empty key: %v", a)
	}
	if a := look("workflow.context.nope", 0); !strings.Contains(a.GetError(), "no such key") {
		t.Errorf("a key that cannot be evaluated: %v", a)
	}
	if a := look("'"+strings.Repeat("k", 100)+"'.split('').map(a, '"+strings.Repeat("k", 200)+"').join('')", 0); !strings.Contains(a.GetError(), "at most") {
		t.Errorf("a long key: %.200v", a)
	}
	if err := save("v1", 0, &historyv1.ExecuteResponse{State: "failed"}); err == nil {
		t.Error("a failed result was cached")
	}
	if err := save("v1", 0, &historyv1.ExecuteResponse{State: "completed", Record: "runs/r-0/results/nope.0.0"}); err == nil {
		t.Error("a result that is nowhere was cached")
	}
	if a := look("'v1'", 0); !proto.Equal(a.GetCached().GetResponse(), small) {
		t.Errorf("after that: %v", a)
	}

	// A large result in a batch's record is reused, too, even after its run has been deleted.
	large := objectOf(t, map[string]any{"text": strings.Repeat("x", 1<<20)})
	record := storekey.Batch("r-0", 0, "build[0-1]", 0, 0)
	if err := c.Store.PutMessage(t.Context(), record, &historyv1.ExecuteResponse{State: "completed", Batch: []*historyv1.MemberResult{
		{Index: 0}, {Index: 1, State: "completed", Result: &v1.TaskResult{Output: large, Stdout: "much"}},
	}}); err != nil {
		t.Fatal(err)
	}
	if err := save("v3", 0, &historyv1.ExecuteResponse{State: "completed", Record: store.MemberReference(record, 1)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Store.DeleteRun(t.Context(), "r-0"); err != nil {
		t.Fatal(err)
	}
	a := look("'v3'", 0)
	if proto.Size(a) > 32<<10 || a.GetCached().GetRunId() != "r-0" || !strings.HasPrefix(a.GetCached().GetResponse().GetRecord(), storekey.RunPrefix("r-1")) {
		t.Fatalf("a large result: %.300v", a)
	}
	whole, err := c.Store.GetResult(t.Context(), a.GetCached().GetResponse().GetRecord())
	if err != nil || !proto.Equal(whole.GetResult().GetOutput(), large) || whole.GetResult().GetStdout() != "much" || whole.GetState() != "completed" {
		t.Errorf("the copy: %v, %.100v", err, whole)
	}
}

// Instances share one key expression but not one result. The item decides, wherever it is in the list.
func TestCachedInstances(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	key := func(cond *historyv1.Condition) string {
		cond.Kind, cond.Expression = "cache", "'v1'"
		return ask(t, c, cond, nil).GetText()
	}
	text := structpb.NewStringValue
	a, b := key(&historyv1.Condition{Task: "each[0]", Item: text("a")}), key(&historyv1.Condition{Task: "each[1]", Item: text("b")})
	if a == b || a != key(&historyv1.Condition{Task: "each[5]", Item: text("a")}) {
		t.Errorf("keys of items: %q and %q", a, b)
	}
	// The task's own input shadows the item.
	own := objectOf(t, map[string]any{"item": "same"})
	if x, y := key(&historyv1.Condition{Task: "each[0]", Item: text("a"), Input: own}), key(&historyv1.Condition{Task: "each[1]", Item: text("b"), Input: own}); x != a || y != b {
		t.Errorf("keys of items that expressions do not see: %q and %q", x, y)
	}
	list, err := proto.Marshal(&historyv1.ItemList{Items: []*structpb.Value{text("a"), text("b")}})
	if err != nil {
		t.Fatal(err)
	}
	stored := storekey.List("r-1", storekey.Digest(list))
	if err := c.Store.Put(t.Context(), stored, list); err != nil {
		t.Fatal(err)
	}
	if x, y := key(&historyv1.Condition{Task: "each[0]", Items: stored}), key(&historyv1.Condition{Task: "each[1]", Items: stored}); x != a || y != b {
		t.Errorf("keys of stored items: %q and %q", x, y)
	}
	if x, y := key(&historyv1.Condition{Task: "each[0]"}), key(&historyv1.Condition{Task: "each[1]"}); x == y {
		t.Errorf("keys of numbers: %q and %q", x, y)
	}
	seen := ask(t, c, &historyv1.Condition{Task: "each[1]", Items: stored, Kind: "template", Template: objectOf(t, map[string]any{"a": "${{ input.item }}"})}, nil)
	if seen.GetRendered().GetFields()["a"].GetStringValue() != "b" {
		t.Errorf("a template of an instance: %v", seen)
	}
	if err := c.SaveCached(t.Context(), &historyv1.SaveCachedRequest{Workflow: "w", Task: "each[0]", Key: a, Result: &historyv1.CachedResult{
		RunId: "r-0", CompletedAt: timestamppb.Now(), Response: &historyv1.ExecuteResponse{State: "completed"},
	}}); err != nil {
		t.Fatal(err)
	}
	found := ask(t, c, &historyv1.Condition{Task: "each[5]", Kind: "cache", Expression: "'v1'", Item: text("a")}, nil)
	if found.GetCached().GetRunId() != "r-0" {
		t.Errorf("the item at another place: %v", found)
	}
}

// A question about a missing result gets an answer that says so. If the store does not respond, the question stays open.
func TestEvaluateMissing(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	gone := map[string]*historyv1.ParentView{"p": {State: "completed", FanOut: &historyv1.FanOutView{Count: 2, Outputs: &historyv1.Items{Key: storekey.List("r-1", "none")}}}}
	if a := ask(t, c, &historyv1.Condition{Task: "t", Expression: "parent.p.count == 2", References: nil}, gone); !a.GetBroken() || !strings.Contains(a.GetError(), "outputs of the instances of p") {
		t.Errorf("answer %v", a)
	}
	if err := c.Store.Close(); err != nil {
		t.Fatal(err)
	}
	res, err := c.Evaluate(t.Context(), &historyv1.EvaluateRequest{
		Conditions: []*historyv1.Condition{{Task: "t", Kind: "cache", Expression: "'x'"}}, Workflow: &historyv1.WorkflowView{Name: "w", RunId: "r-1"},
	})
	if err != nil || len(res.GetAnswers()) != 0 || res.GetAway() == "" {
		t.Errorf("with a store that is closed: %v, %v", res, err)
	}
}
