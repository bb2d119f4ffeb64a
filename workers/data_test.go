package workers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/executor/shell"
	v1 "switchyard/proto/switchyard/v1"
)

// withShell makes a node run real commands.
func withShell(t *testing.T) func(*NodeConfig) {
	t.Helper()
	sh, err := shell.New(shell.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sh.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(cfg *NodeConfig) { cfg.Executors = []executor.Executor{sh} }
}

func TestContextUpdatesMerge(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{
		"one": {{ContextUpdate: `{"a": 1, "b": {"x": 1}}`}},
		"two": {{ContextUpdate: "b=new\nc=3\n"}},
		"bad": {{ContextUpdate: `{"d": 4}`, Result: executorOOM()}},
	})
	c.start("a")
	run := c.do(`{name: context, context: {a: 0, kept: true}, tasks: {
		one: {type: shell, spec: {command: x}}, two: {type: shell, spec: {command: x}, dependsOn: [one]},
		bad: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
		after: {type: shell, spec: {command: x}, dependsOn: [two], condition: workflow.context.b == 'new'}}}`)
	want(t, run, "failed", map[string]string{"after": "completed"})
	got, err := json.Marshal(run.GetContext().AsMap())
	if err != nil {
		t.Fatal(err)
	}
	// A failed task adds nothing.
	if want := `{"a":1,"b":"new","c":"3","kept":true}`; string(got) != want {
		t.Errorf("context %s, want %s", got, want)
	}
}

// TestContextTooLarge checks that a task that would exceed the limit of the run's context fails.
func TestContextTooLarge(t *testing.T) {
	t.Parallel()
	s := script{"file": {{ContextUpdate: `{"x": "` + strings.Repeat("x", 33<<10) + `"}`}}}
	def := &v1.Definition{Name: "context", Tasks: map[string]*v1.TaskDefinition{"file": shellTask()}}
	retries := int32(0)
	def.Tasks["file"].Retry = &v1.RetryPolicy{MaxRetries: &retries}
	last := ""
	for i := range 9 {
		name := fmt.Sprintf("t%d", i)
		s[name] = append(s[name], fake.Step{ContextUpdate: fmt.Sprintf(`{"k%d": "%s"}`, i, strings.Repeat("x", 30<<10))})
		def.Tasks[name] = shellTask()
		if last != "" {
			def.Tasks[name].DependsOn = []string{last}
		}
		last = name
	}
	c := shared(t).workers(t, s)
	c.start("a")
	run := c.submit(c.inputOf(def)).wait()
	want(t, run, "failed", map[string]string{"t7": "completed", "t8": "failed context", "file": "failed output"})
	if n := len(run.GetContext().GetFields()); n != 8 {
		t.Errorf("the context has %d keys, want those of the 8 tasks that completed", n)
	}
}

// TestOutputReachesChildren checks that downstream tasks read an output that is too large to send from its record.
func TestOutputReachesChildren(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("a", withShell(t))
	result := filepath.Join(t.TempDir(), "input")
	run := c.do(`
name: output
tasks:
  small: { type: shell, spec: { command: 'echo "{\"n\": 7}" >"$SWITCHYARD_OUTPUT"' } }
  large: { type: shell, spec: { command: 'printf "text=" >"$SWITCHYARD_OUTPUT"; head -c 100000 /dev/zero | tr "\0" x >>"$SWITCHYARD_OUTPUT"' } }
  child:
    type: shell
    input: { own: "yes" }
    spec: { command: 'cat "$SWITCHYARD_INPUT" >"$RESULT"' }
    env: { RESULT: "` + result + `" }
    dependsOn: [small, large]
`)
	want(t, run, "completed", nil)
	data, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	var input struct {
		Own   string
		Small struct{ N float64 }
		Large struct{ Text string }
	}
	if err := json.Unmarshal(data, &input); err != nil {
		t.Fatal(err)
	}
	if input.Own != "yes" || input.Small.N != 7 || len(input.Large.Text) != 100_000 {
		t.Errorf("the child saw %d bytes of input, of which text %d", len(data), len(input.Large.Text))
	}
	if n := proto.Size(run.Tasks["large"].GetResult()); n > 24<<10 {
		t.Errorf("the history holds %d bytes of the large result", n)
	}
}

// TestEndsOfAncestorsReachATask checks that a task that runs after failures gets the end states of its ancestors,
// including distant ones and instances.
func TestEndsOfAncestorsReachATask(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("a", withShell(t))
	result := filepath.Join(t.TempDir(), "input")
	run := c.do(`
name: ends
defaults: { type: shell, retry: { maxRetries: 0 } }
tasks:
  far: { spec: { command: exit 4 } }
  ok: { spec: { command: 'true' } }
  again: { spec: { command: 'test "$SWITCHYARD_ATTEMPT" = 1' }, retry: { maxRetries: 1, backoffMs: 1 } }
  lint: { spec: { command: 'echo no >&2; exit 2' }, dependsOn: [ok] }
  deploy: { spec: { command: 'true' }, dependsOn: [far] }
  each: { spec: { command: 'test "$SWITCHYARD_ITEM" != b || exit 3' }, foreach: [a, b] }
  count: { spec: { command: exit 5 }, parallel: 3, maxFailures: 3 }
  tell:
    dependsOn: [lint, deploy, each, count, again]
    when: always
    spec: { command: 'cat "$SWITCHYARD_INPUT" >"$RESULT"' }
    env: { RESULT: "` + result + `" }
`)
	want(t, run, "failed", map[string]string{"tell": "completed"})
	data, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Ancestors map[string]any }
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	var wanted map[string]any
	if err := json.Unmarshal([]byte(`{
		"far": {"state": "failed", "reason": "exit_code", "error": "exit code 4", "exitCode": 4, "attempt": 0},
		"ok": {"state": "completed", "exitCode": 0, "attempt": 0},
		"again": {"state": "completed", "exitCode": 0, "attempt": 1},
		"lint": {"state": "failed", "reason": "exit_code", "error": "exit code 2: no", "exitCode": 2, "attempt": 0},
		"deploy": {"state": "skipped", "reason": "upstream", "error": "task \"far\" failed", "exitCode": -1, "attempt": 0},
		"each": {"state": "failed", "reason": "instances", "error": "1 of 2 instances failed: each[1]: exit code 3", "exitCode": 3,
			"count": 2, "completed": 1, "failed": 1, "instances": [{"index": 0, "state": "completed", "item": "a"}, {"index": 1, "state": "failed", "item": "b"}]},
		"count": {"state": "completed", "exitCode": 5, "count": 3, "completed": 0, "failed": 3,
			"instances": [{"index": 0, "state": "failed"}, {"index": 1, "state": "failed"}, {"index": 2, "state": "failed"}]}}`), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got.Ancestors); diff != "" {
		t.Errorf("the ancestors (-want +got):\n%s", diff)
	}
}

// TestRequestTooLarge checks that a request that is too large to send fails its task and not the run.
func TestRequestTooLarge(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("a")
	in := c.input(`{name: large, tasks: {
		large: {type: shell, spec: {command: x}}, small: {type: shell, spec: {command: x}},
		after: {type: shell, spec: {command: x}, dependsOn: [large], onFailure: run}}}`)
	in.Definition.Tasks["large"].Spec = structOf(map[string]any{"command": strings.Repeat("x", 1950<<10)})
	// Switchyard's own client would not send this, but the server accepts it.
	unguarded, err := client.Dial(client.Options{HostPort: c.server.Address(), Logger: sdklog.NewStructuredLogger(c.logger)})
	if err != nil {
		t.Fatal(err)
	}
	defer unguarded.Close()
	run := c.submitBy(unguarded, in).wait()
	want(t, run, "failed", map[string]string{"large": "failed payload", "small": "completed", "after": "completed"})
	if text := run.Tasks["large"].GetError(); !strings.Contains(text, "too large") {
		t.Errorf("error: %q", text)
	}
}
