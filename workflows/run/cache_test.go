package run_test

import (
	"fmt"
	"strings"
	"testing"

	"switchyard/activities/executor/fake"
	"switchyard/activities/logs"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

// TestCompletedResultIsReusedUnderItsKey checks that a completed result is reused under the same key, also by another
// run, and that a failed one never is.
func TestCompletedResultIsReusedUnderItsKey(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Stdout: "slow", Output: "n=1", ContextUpdate: "seen=1"}}, "bad": {fake.Exit(1)}})
	c.Start("n")
	document := fmt.Sprintf(`{name: cached-%d, tasks: {
		a: {type: shell, spec: {command: x}, cache: {key: "'v' + workflow.input.version", ttl: 1h}},
		bad: {type: shell, spec: {command: x}, cache: {key: "'v'"}, continueOnError: true, retry: {maxRetries: 0}},
		each: {type: shell, spec: {command: x}, foreach: [p, q], cache: {key: "'v'"}},
		b: {type: shell, spec: {command: x}, dependsOn: [a], condition: "parent.a.output.n == '1' && workflow.context.seen == '1'"}}}`, len(c.Label))
	version := func(v string) *historyv1.RunInput {
		in := c.Input(document)
		in.Input = workertest.StructOf(map[string]any{"version": v})
		return in
	}
	first := c.Submit(version("1"))
	workertest.CheckRun(t, first.Wait(), "completed", map[string]string{"a": "completed", "b": "completed", "bad": "failed"})
	second := c.Submit(version("1"))
	run := second.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"a": "completed", "b": "completed", "bad": "failed"})
	if a := run.Tasks["a"]; a.GetCachedFrom() != first.ID || a.GetResult().GetStdout() != "slow" {
		t.Errorf("a is %v", a)
	}
	if each := run.Tasks["each"].GetInstances(); len(each) != 2 || each[1].GetCachedFrom() != first.ID {
		t.Errorf("the instances are %v", each)
	}
	if n := c.Calls(); n["a"] != 1 || n["bad"] != 2 || n["b"] != 2 {
		t.Errorf("executions: %v", n)
	}
	for _, e := range storedEvents(second, 0) {
		if e.GetTask() == "a" && e.GetEvent() == "completed" && e.GetDetail() != "cached from "+first.ID {
			t.Errorf("event %v", e)
		}
	}
	third := c.Submit(version("2"))
	workertest.CheckRun(t, third.Wait(), "completed", nil)
	if n := c.Calls(); n["a"] != 2 {
		t.Errorf("executions: %v", n)
	}
	workertest.Replay(t, "cache-miss", limits.Run{}, first.History(""))
	workertest.Replay(t, "cache-hit", limits.Run{}, second.History(""))
}

// printedBy returns the log of a task's first attempt, including lines from the system.
func printedBy(h *workertest.Handle, task string) string {
	h.T.Helper()
	attempts, err := logs.Attempts(h.T.Context(), h.Store, h.Home(), task)
	if err != nil || len(attempts) == 0 {
		h.T.Fatalf("logs of %s: %v, %v", task, attempts, err)
	}
	entries, _, _, err := logs.Read(h.T.Context(), h.Store, attempts[0], 0)
	if err != nil {
		h.T.Fatal(err)
	}
	var text strings.Builder
	for _, e := range entries {
		text.Write(e.GetData())
	}
	return text.String()
}

// TestTaskWithInvalidCacheKeyRunsWithoutCache checks that a task with an invalid or empty cache key runs without the
// cache, and that its events and its log say so.
func TestTaskWithInvalidCacheKeyRunsWithoutCache(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	h := c.Submit(c.Input(fmt.Sprintf(`{name: uncached-%d, tasks: {
		broken: {type: shell, spec: {command: x}, cache: {key: "workflow.context.nothing"}},
		empty: {type: shell, spec: {command: x}, cache: {key: "''"}},
		each: {type: shell, spec: {command: x}, parallel: 2, batch: 2, cache: {key: "workflow.context.nothing"}},
		fine: {type: shell, spec: {command: x}, cache: {key: "'v'"}}}}`, len(c.Label))))
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"broken": "completed", "empty": "completed", "fine": "completed"})
	told := map[string]string{}
	for _, e := range storedEvents(h, 0) {
		if strings.HasPrefix(e.GetDetail(), "runs without the cache: ") {
			told[e.GetTask()] = e.GetDetail()
		}
	}
	if len(told) != 4 || !strings.Contains(told["broken"], "nothing") || !strings.Contains(told["empty"], "the key is empty") || told["each[1]"] == "" {
		t.Errorf("events: %v", told)
	}
	if got := printedBy(h, "empty"); !strings.HasPrefix(got, "[switchyard: runs without the cache: ") {
		t.Errorf("the log of empty: %q", got)
	}
	attempts, err := logs.Instances(t.Context(), c.Store, h.Home(), "each")
	if err != nil || len(attempts) != 1 {
		t.Fatalf("logs of the batch: %v, %v", attempts, err)
	}
	entries, _, _, err := logs.Read(t.Context(), c.Store, attempts[0], 0)
	if err != nil || len(entries) == 0 || !strings.Contains(string(entries[0].GetData()), "each[0] runs without the cache: ") {
		t.Errorf("the log of the batch: %v, %v", entries, err)
	}
	workertest.Replay(t, "cache-key", limits.Run{}, h.History(""))
}
