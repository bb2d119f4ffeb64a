package run_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// rerunTasks retries dead letters of the ended run in its next generation.
func rerunTasks(h *workertest.Handle, in *historyv1.RunInput, generation int32, tasks ...string) *workertest.Handle {
	in = proto.CloneOf(in)
	in.Retry = tasks
	return h.Rerun(in, generation, nil)
}

// awaitVisibleDeadLetters waits until visibility shows the given number of dead letters of the run.
func awaitVisibleDeadLetters(h *workertest.Handle, n int) {
	h.T.Helper()
	workertest.Eventually(h.T, fmt.Sprintf("visibility shows %d dead letters of %s", n, h.ID), func() bool {
		res, err := h.Conn.ListWorkflow(h.T.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowId = %q AND %s = %d", h.ID, names.DeadLettersAttribute, n),
		})
		return err == nil && len(res.GetExecutions()) > 0
	})
}

const deadLetterRun = `{name: letters, context: {first: 1}, tasks: {
	dead: {type: shell, spec: {command: x}, retry: {maxRetries: 1, backoffMs: 5}},
	below: {type: shell, spec: {command: x}, dependsOn: [dead], condition: "workflow.context.first == 1 && parent.dead.exitCode == 0"},
	last: {type: shell, spec: {command: x}, dependsOn: [below]},
	notify: {type: shell, spec: {command: x}, dependsOn: [dead], onFailure: run},
	other: {type: shell, spec: {command: x}}}}`

// twiceDead holds steps that end in a dead letter twice and then succeed.
var twiceDead = []fake.Step{fake.Exit(1), fake.Exit(2), fake.Exit(3), fake.Exit(4), {}}

func TestRetryOfDeadLetterContinuesOpenRun(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"dead": twiceDead, "other": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.Input(deadLetterRun))
	isDead := func(claim int32) func(*v1.Task) bool {
		return func(x *v1.Task) bool {
			return x.GetState() == "dead_letter" && x.GetAttempts()[len(x.GetAttempts())-1].GetClaim() == claim
		}
	}
	h.AwaitTask("dead", isDead(2))
	h.AwaitTask("notify", func(x *v1.Task) bool { return x.GetState() == "completed" })
	h.AwaitTask("last", func(x *v1.Task) bool { return x.GetState() == "skipped" })
	awaitVisibleDeadLetters(h, 1)
	for task, kind := range map[string]string{"nobody": names.UnknownTaskError, "notify": names.TaskStateError, "other": names.TaskStateError} {
		err := retryTask(h, task)
		if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || app.Type() != kind || !strings.Contains(app.Message(), task) {
			t.Errorf("task %s is put back: %v, want %s", task, err, kind)
		}
	}
	if err := retryTask(h, "dead"); err != nil {
		t.Fatal(err)
	}
	h.AwaitTask("dead", isDead(4))
	h.AwaitTask("last", func(x *v1.Task) bool { return x.GetState() == "skipped" })
	if err := retryTask(h, "dead"); err != nil {
		t.Fatal(err)
	}
	h.AwaitTask("last", func(x *v1.Task) bool { return x.GetState() == "completed" })
	awaitVisibleDeadLetters(h, 0)
	c.Fake.Release("other")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"dead": "completed", "below": "completed", "notify": "completed", "other": "completed"})
	if diff := maps.Equal(c.Calls(), map[string]int{"dead": 5, "below": 1, "last": 1, "notify": 1, "other": 1}); !diff {
		t.Errorf("executions: %v", c.Calls())
	}
	dead := run.Tasks["dead"]
	var attempts []string
	for _, a := range dead.GetAttempts() {
		attempts = append(attempts, fmt.Sprintf("%d.%d %s %d", a.GetAttempt(), a.GetClaim(), a.GetState(), a.GetExitCode()))
		if a.GetNode() != c.Name("n") || a.GetStartedAt() == nil || a.GetCompletedAt().AsTime().Before(a.GetStartedAt().AsTime()) {
			t.Errorf("attempt %v", a)
		}
	}
	if got, want := strings.Join(attempts, ", "), "0.1 failed 1, 1.2 failed 2, 0.3 failed 3, 1.4 failed 4, 0.5 completed 0"; got != want || dead.GetAttempt() != 0 {
		t.Errorf("attempts are %s, want %s", got, want)
	}
	const life = "queued assigned started failed retried queued assigned started failed dead_lettered"
	if got, want := lifecycleOf(h, "dead", 1), "submitted "+life+" retried "+life+" retried queued assigned started completed"; got != want {
		t.Errorf("dead: %s, want %s", got, want)
	}
	if got, want := lifecycleOf(h, "last", 1), "submitted skipped retried skipped retried queued assigned started completed"; got != want {
		t.Errorf("last: %s, want %s", got, want)
	}
	if got, want := lifecycleOf(h, "", 1), "submitted completed"; got != want {
		t.Errorf("run: %s, want %s", got, want)
	}
	workertest.Replay(t, "dead-letter-open", limits.Run{}, h.History(""))
}

// TestRetryOfDeadLetterContinuesClosedRunAsNextGeneration checks that an ended run continues as its next generation:
// completed tasks stay, claims grow, and the context is kept.
func TestRetryOfDeadLetterContinuesClosedRunAsNextGeneration(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"dead": twiceDead, "notify": {{ContextUpdate: "told=1"}}})
	c.Start("n")
	in := c.Input(deadLetterRun)
	h := c.Submit(in)
	first := h.Wait()
	workertest.CheckRun(t, first, "failed", map[string]string{"dead": "dead_letter exit_code", "below": "skipped condition", "last": "skipped upstream", "notify": "completed"})
	awaitVisibleDeadLetters(h, 1)

	h = rerunTasks(h, in, 1, "dead")
	second := h.Wait()
	workertest.CheckRun(t, second, "failed", map[string]string{"dead": "dead_letter exit_code", "below": "skipped condition"})
	h = rerunTasks(h, in, 2, "dead")
	third := h.Wait()
	workertest.CheckRun(t, third, "completed", map[string]string{"dead": "completed", "below": "completed", "last": "completed", "notify": "completed", "other": "completed"})
	if !maps.Equal(c.Calls(), map[string]int{"dead": 5, "below": 1, "last": 1, "notify": 1, "other": 1}) {
		t.Errorf("executions: %v", c.Calls())
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
	if got, want := lifecycleOf(h, "last", 3), "submitted skipped retried skipped retried queued assigned started completed"; got != want {
		t.Errorf("last: %s, want %s", got, want)
	}
	if got, want := lifecycleOf(h, "", 3), "submitted failed submitted failed submitted completed"; got != want {
		t.Errorf("run: %s, want %s", got, want)
	}
	workertest.Replay(t, "generation", limits.Run{}, h.History(""))
}

// TestStateOfLargeRunPassesThroughStore checks that the state of a large run passes from generation to generation through the
// store, and that a generation that cannot begin ends with the reason.
func TestStateOfLargeRunPassesThroughStore(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"dead": {fake.Exit(1), {}}, "large": {{Stdout: strings.Repeat("x", 20<<10)}}})
	c.Start("n")
	in := c.Input(`{name: large, tasks: {
		dead: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
		large: {type: shell, spec: {command: x}, parallel: 30},
		after: {type: shell, spec: {command: x}, dependsOn: [dead, large]}}}`)
	h := c.Submit(in)
	first := h.Wait()
	workertest.CheckRun(t, first, "failed", map[string]string{"after": "skipped upstream"})
	h = h.Rerun(in, 1, &historyv1.Rerun{Failed: true})
	second := h.Wait()
	workertest.CheckRun(t, second, "completed", map[string]string{"dead": "completed", "after": "completed", "large": "completed"})
	a, b := first.Tasks["large"].GetInstances()[7].GetResult(), second.Tasks["large"].GetInstances()[7].GetResult()
	if a.GetStdout() != b.GetStdout() || len(b.GetStdout()) < 1000 {
		t.Errorf("the result of an instance had %d bytes, and has %d", len(a.GetStdout()), len(b.GetStdout()))
	}
	if n := len(c.Fake.Calls()); n != 33 {
		t.Errorf("%d executions", n)
	}
	for generation, text := range map[int32]string{2: "nobody", 7: "generation 6"} {
		err := rerunTasks(h, in, generation, "nobody").Workflow.Get(t.Context(), nil)
		if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || !strings.Contains(app.Message(), text) {
			t.Errorf("generation %d: %v", generation, err)
		}
	}
}
