package workers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"switchyard/activities/executor/fake"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// retry retries a dead letter of the open run.
func (h *handle) retry(task string) error {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	update, err := h.conn.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: h.id, UpdateName: names.RetryUpdate, Args: []any{&v1.RetryTaskRequest{Task: task}},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return update.Get(ctx, nil)
}

// again starts the ended run as its next generation.
func (h *handle) again(in *v1.RunInput, generation int32, tasks ...string) *handle {
	h.t.Helper()
	in = &v1.RunInput{Definition: in.GetDefinition(), References: in.GetReferences(), Options: in.GetOptions(), Generation: generation, Retry: tasks, Chain: h.chain}
	run, err := h.conn.ExecuteWorkflow(h.t.Context(), client.StartWorkflowOptions{
		ID: h.id, TaskQueue: names.ControlQueue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, names.RunWorkflow, in)
	if err != nil {
		h.t.Fatal(err)
	}
	return &handle{workerSet: h.workerSet, id: h.id, run: run, chain: h.chain}
}

// visibleDeadLetters waits until visibility shows the given number of dead letters of the run.
func (h *handle) visibleDeadLetters(n int) {
	h.t.Helper()
	eventually(h.t, fmt.Sprintf("visibility shows %d dead letters of %s", n, h.id), func() bool {
		res, err := h.conn.ListWorkflow(h.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowId = %q AND %s = %d", h.id, names.DeadLettersAttribute, n),
		})
		return err == nil && len(res.GetExecutions()) > 0
	})
}

// lifecycle returns the events of a task over all generations as a text.
func (h *handle) lifecycle(task string, generations int32) string {
	h.t.Helper()
	var words []string
	for g := range generations {
		for _, e := range h.stored(g) {
			if e.GetTask() == task {
				words = append(words, e.GetEvent())
			}
		}
	}
	return strings.Join(words, " ")
}

// stored returns the stored events of a generation.
func (h *handle) stored(generation int32) []*v1.Event {
	h.t.Helper()
	var events []*v1.Event
	for n := int32(0); ; n++ {
		var part v1.EventSlice
		err := h.store.GetMessage(h.t.Context(), storekey.Events(h.home(), generation, n), &part)
		if errors.Is(err, store.ErrNotFound) {
			return events
		}
		if err != nil {
			h.t.Fatal(err)
		}
		events = append(events, part.GetEvents()...)
	}
}

const deadLetterRun = `{name: letters, context: {first: 1}, tasks: {
	dead: {type: shell, spec: {command: x}, retry: {maxRetries: 1, backoffMs: 5}},
	below: {type: shell, spec: {command: x}, dependsOn: [dead], condition: "workflow.context.first == 1 && parent.dead.exitCode == 0"},
	last: {type: shell, spec: {command: x}, dependsOn: [below]},
	notify: {type: shell, spec: {command: x}, dependsOn: [dead], onFailure: run},
	other: {type: shell, spec: {command: x}}}}`

// twiceDead holds steps that end in a dead letter twice and then succeed.
var twiceDead = []fake.Step{fake.Exit(1), fake.Exit(2), fake.Exit(3), fake.Exit(4), {}}

func TestRetryOfADeadLetterInAnOpenRun(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"dead": twiceDead, "other": {{Block: true}}})
	c.start("n")
	h := c.submit(c.input(deadLetterRun))
	isDead := func(claim int32) func(*v1.Task) bool {
		return func(x *v1.Task) bool {
			return x.GetState() == "dead_letter" && x.GetAttempts()[len(x.GetAttempts())-1].GetClaim() == claim
		}
	}
	h.until("dead", isDead(2))
	h.until("notify", func(x *v1.Task) bool { return x.GetState() == "completed" })
	h.until("last", func(x *v1.Task) bool { return x.GetState() == "skipped" })
	h.visibleDeadLetters(1)
	for task, kind := range map[string]string{"nobody": names.UnknownTaskError, "notify": names.TaskStateError, "other": names.TaskStateError} {
		err := h.retry(task)
		if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || app.Type() != kind || !strings.Contains(app.Message(), task) {
			t.Errorf("task %s is put back: %v, want %s", task, err, kind)
		}
	}
	if err := h.retry("dead"); err != nil {
		t.Fatal(err)
	}
	h.until("dead", isDead(4))
	h.until("last", func(x *v1.Task) bool { return x.GetState() == "skipped" })
	if err := h.retry("dead"); err != nil {
		t.Fatal(err)
	}
	h.until("last", func(x *v1.Task) bool { return x.GetState() == "completed" })
	h.visibleDeadLetters(0)
	c.fake.Release("other")
	run := h.wait()
	want(t, run, "completed", map[string]string{"dead": "completed", "below": "completed", "notify": "completed", "other": "completed"})
	if diff := maps.Equal(c.calls(), map[string]int{"dead": 5, "below": 1, "last": 1, "notify": 1, "other": 1}); !diff {
		t.Errorf("executions: %v", c.calls())
	}
	dead := run.Tasks["dead"]
	var attempts []string
	for _, a := range dead.GetAttempts() {
		attempts = append(attempts, fmt.Sprintf("%d.%d %s %d", a.GetAttempt(), a.GetClaim(), a.GetState(), a.GetExitCode()))
		if a.GetNode() != c.name("n") || a.GetStartedAt() == nil || a.GetCompletedAt().AsTime().Before(a.GetStartedAt().AsTime()) {
			t.Errorf("attempt %v", a)
		}
	}
	if got, want := strings.Join(attempts, ", "), "0.1 failed 1, 1.2 failed 2, 0.3 failed 3, 1.4 failed 4, 0.5 completed 0"; got != want || dead.GetAttempt() != 0 {
		t.Errorf("attempts are %s, want %s", got, want)
	}
	const life = "queued assigned started failed retried queued assigned started failed dead_lettered"
	if got, want := h.lifecycle("dead", 1), "submitted "+life+" retried "+life+" retried queued assigned started completed"; got != want {
		t.Errorf("dead: %s, want %s", got, want)
	}
	if got, want := h.lifecycle("last", 1), "submitted skipped retried skipped retried queued assigned started completed"; got != want {
		t.Errorf("last: %s, want %s", got, want)
	}
	if got, want := h.lifecycle("", 1), "submitted completed"; got != want {
		t.Errorf("run: %s, want %s", got, want)
	}
	replay(t, "dead-letter-open", limits.Run{}, h.history(""))
}

// TestRetryOfADeadLetterInAClosedRun checks that an ended run continues as its next generation: completed tasks stay,
// claims grow, and the context is kept.
func TestRetryOfADeadLetterInAClosedRun(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"dead": twiceDead, "notify": {{ContextUpdate: "told=1"}}})
	c.start("n")
	in := c.input(deadLetterRun)
	h := c.submit(in)
	first := h.wait()
	want(t, first, "failed", map[string]string{"dead": "dead_letter exit_code", "below": "skipped condition", "last": "skipped upstream", "notify": "completed"})
	h.visibleDeadLetters(1)

	h = h.again(in, 1, "dead")
	second := h.wait()
	want(t, second, "failed", map[string]string{"dead": "dead_letter exit_code", "below": "skipped condition"})
	h = h.again(in, 2, "dead")
	third := h.wait()
	want(t, third, "completed", map[string]string{"dead": "completed", "below": "completed", "last": "completed", "notify": "completed", "other": "completed"})
	if !maps.Equal(c.calls(), map[string]int{"dead": 5, "below": 1, "last": 1, "notify": 1, "other": 1}) {
		t.Errorf("executions: %v", c.calls())
	}
	if third.GetGeneration() != 2 || second.GetGeneration() != 1 || third.GetContext().GetFields()["told"] == nil {
		t.Errorf("generations %d %d, context %v", second.GetGeneration(), third.GetGeneration(), third.GetContext())
	}
	if !third.GetCreatedAt().AsTime().Equal(first.GetCreatedAt().AsTime()) {
		t.Errorf("submitted at %v, then %v", first.GetCreatedAt().AsTime(), third.GetCreatedAt().AsTime())
	}
	var claims []int32
	for _, a := range third.Tasks["dead"].GetAttempts() {
		claims = append(claims, a.GetClaim())
	}
	if !slices.Equal(claims, []int32{1, 2, 3, 4, 5}) {
		t.Errorf("claims %v", claims)
	}
	if a, b := first.Tasks["notify"], third.Tasks["notify"]; !a.GetCompletedAt().AsTime().Equal(b.GetCompletedAt().AsTime()) || b.GetResult().GetExitCode() != 0 {
		t.Errorf("notify was %v, is %v", a, b)
	}
	if got, want := h.lifecycle("last", 3), "submitted skipped retried skipped retried queued assigned started completed"; got != want {
		t.Errorf("last: %s, want %s", got, want)
	}
	if got, want := h.lifecycle("", 3), "submitted failed submitted failed submitted completed"; got != want {
		t.Errorf("run: %s, want %s", got, want)
	}
	replay(t, "generation", limits.Run{}, h.history(""))
}

// TestRetryOfALargeRun checks that the state of a large run passes from generation to generation through the store.
func TestRetryOfALargeRun(t *testing.T) {
	t.Parallel()
	s := script{"dead": {fake.Exit(1), {}}}
	def := &v1.Definition{Name: "large", Tasks: map[string]*v1.TaskDefinition{"dead": shellTask(), "after": shellTask("dead")}}
	one := int32(1)
	def.Tasks["dead"].Retry = &v1.RetryPolicy{MaxRetries: &one, BackoffMs: &one}
	s["dead"] = []fake.Step{fake.Exit(1), fake.Exit(1), {}}
	for i := range 30 {
		name := fmt.Sprintf("t%02d", i)
		def.Tasks[name] = shellTask()
		s[name] = []fake.Step{{Stdout: strings.Repeat("x", 20<<10)}}
		def.Tasks["after"].DependsOn = append(def.Tasks["after"].DependsOn, name)
	}
	c := shared(t).workers(t, s)
	c.start("n")
	in := c.inputOf(def)
	h := c.submit(in)
	first := h.wait()
	want(t, first, "failed", map[string]string{"after": "skipped upstream"})
	h = h.again(in, 1, "dead")
	second := h.wait()
	want(t, second, "completed", map[string]string{"dead": "completed", "after": "completed", "t00": "completed"})
	if a, b := first.Tasks["t07"].GetResult(), second.Tasks["t07"].GetResult(); a.GetStdout() != b.GetStdout() || len(b.GetStdout()) < 1000 {
		t.Errorf("the result of t07 had %d bytes, and has %d", len(a.GetStdout()), len(b.GetStdout()))
	}
	if n := len(c.fake.Calls()); n != 34 {
		t.Errorf("%d executions", n)
	}
}

// TestGenerationRefuses checks that a generation that cannot retry its tasks ends with the reason.
func TestGenerationRefuses(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	in := c.input(`{name: fine, tasks: {a: {type: shell, spec: {command: x}}}}`)
	h := c.submit(in)
	want(t, h.wait(), "completed", nil)
	for _, task := range []string{"a", "nobody"} {
		h := h.again(in, 1, task)
		err := h.run.Get(t.Context(), nil)
		if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || !strings.Contains(app.Message(), task) {
			t.Errorf("task %s: %v", task, err)
		}
	}
	err := h.again(in, 7, "a").run.Get(t.Context(), nil)
	if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || !strings.Contains(app.Message(), "generation 6") {
		t.Errorf("a generation without the one before: %v", err)
	}
}
