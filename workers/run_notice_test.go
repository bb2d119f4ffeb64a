package workers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/logs"
	"switchyard/workflows/limits"
)

// printed returns the log of a task's first attempt, including lines from the system.
func (h *handle) printed(task string) string {
	h.t.Helper()
	attempts, err := logs.Attempts(h.t.Context(), h.store, h.home(), task)
	if err != nil || len(attempts) == 0 {
		h.t.Fatalf("logs of %s: %v, %v", task, attempts, err)
	}
	entries, _, _, err := logs.Read(h.t.Context(), h.store, attempts[0], 0)
	if err != nil {
		h.t.Fatal(err)
	}
	var text strings.Builder
	for _, e := range entries {
		text.Write(e.GetData())
	}
	return text.String()
}

// TestCacheKeyThatCannotBeTold checks that a task with an invalid or empty cache key runs without the cache, and that
// its events and its log say so.
func TestCacheKeyThatCannotBeTold(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	h := c.submit(c.input(fmt.Sprintf(`{name: uncached-%d, tasks: {
		broken: {type: shell, spec: {command: x}, cache: {key: "workflow.context.nothing"}},
		empty: {type: shell, spec: {command: x}, cache: {key: "''"}},
		each: {type: shell, spec: {command: x}, parallel: 2, batch: 2, cache: {key: "workflow.context.nothing"}},
		fine: {type: shell, spec: {command: x}, cache: {key: "'v'"}}}}`, len(c.label))))
	want(t, h.wait(), "completed", map[string]string{"broken": "completed", "empty": "completed", "fine": "completed"})
	told := map[string]string{}
	for _, e := range h.stored(0) {
		if strings.HasPrefix(e.GetDetail(), "runs without the cache: ") {
			told[e.GetTask()] = e.GetDetail()
		}
	}
	if len(told) != 4 || !strings.Contains(told["broken"], "nothing") || !strings.Contains(told["empty"], "the key is empty") || told["each[1]"] == "" {
		t.Errorf("events: %v", told)
	}
	if got := h.printed("empty"); !strings.HasPrefix(got, "[switchyard: runs without the cache: ") {
		t.Errorf("the log of empty: %q", got)
	}
	attempts, err := logs.Instances(t.Context(), c.store, h.home(), "each")
	if err != nil || len(attempts) != 1 {
		t.Fatalf("logs of the batch: %v, %v", attempts, err)
	}
	entries, _, _, err := logs.Read(t.Context(), c.store, attempts[0], 0)
	if err != nil || len(entries) == 0 || !strings.Contains(string(entries[0].GetData()), "each[0] runs without the cache: ") {
		t.Errorf("the log of the batch: %v, %v", entries, err)
	}
	replay(t, "cache-key", limits.Run{}, h.history(""))
}

// TestCacheKeysOfStoredItems checks that expressions see the items of a list in the store.
func TestCacheKeysOfStoredItems(t *testing.T) {
	t.Parallel()
	var files []string
	for i := range 6 {
		files = append(files, fmt.Sprintf("%q", fmt.Sprint(i, strings.Repeat("x", 2000))))
	}
	c := shared(t).workers(t, script{"discover": {{Output: `{"files": [` + strings.Join(files, ", ") + `]}`}}})
	c.start("n")
	document := fmt.Sprintf(`{name: items-%d, tasks: {
		discover: {type: shell, spec: {command: x}},
		each: {type: shell, spec: {command: x}, dependsOn: [discover], foreach: "discover.files", cache: {key: "input.item + string(input.count)"}}}}`, len(c.label))
	first := c.submit(c.input(document))
	want(t, first.wait(), "completed", nil)
	second := c.submit(c.input(document))
	for _, i := range second.wait().Tasks["each"].GetInstances() {
		if i.GetCachedFrom() != first.id {
			t.Errorf("instance %d is %v", i.GetIndex(), i)
		}
	}
	if n := c.calls()["each"]; n != 6 {
		t.Errorf("%d executions", n)
	}
}

// TestSpecThatIsNone checks that a task that can never start is not retried.
func TestSpecThatIsNone(t *testing.T) {
	t.Parallel()
	bad := fake.Step{StartErr: &executor.StartError{ExitCode: 126, BadSpec: true, Err: errors.New("command[1] is not a string")}}
	c := shared(t).workers(t, script{"bad": {bad}})
	c.start("n")
	run := c.do(`{name: bad, tasks: {bad: {type: shell, spec: {command: x}, retry: {maxRetries: 3, backoffMs: 1}}}}`)
	want(t, run, "failed", map[string]string{"bad": "failed bad_spec"})
	if n := c.calls()["bad"]; n != 1 || run.Tasks["bad"].GetResult().GetExitCode() != 126 {
		t.Errorf("%d attempts: %v", n, run.Tasks["bad"])
	}
}
