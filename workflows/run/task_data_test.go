package run_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell"
	"switchyard/workers"
	"switchyard/workers/workertest"
)

// withShell makes a node run real commands.
func withShell(t *testing.T) func(*workers.NodeConfig) {
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
	return func(cfg *workers.NodeConfig) { cfg.Executors = []executor.Executor{sh} }
}

// TestOutputReachesChildren checks that downstream tasks read an output that is too large to send from its record.
func TestOutputReachesChildren(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("a", withShell(t))
	result := filepath.Join(t.TempDir(), "input")
	run := c.Do(`
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
	workertest.CheckRun(t, run, "completed", nil)
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

// TestEndsOfAncestorsReachTask checks that a task that runs after failures gets the end states of its ancestors,
// including distant ones and instances.
func TestEndsOfAncestorsReachTask(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("a", withShell(t))
	result := filepath.Join(t.TempDir(), "input")
	run := c.Do(`
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
	workertest.CheckRun(t, run, "failed", map[string]string{"tell": "completed"})
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

// TestRequestTooLargeToSendFailsItsTask checks that a request that is too large to send fails its task and not the run.
func TestRequestTooLargeToSendFailsItsTask(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("a")
	in := c.Input(`{name: large, tasks: {
		large: {type: shell, spec: {command: x}}, small: {type: shell, spec: {command: x}},
		after: {type: shell, spec: {command: x}, dependsOn: [large], onFailure: run}}}`)
	in.Definition.Tasks["large"].Spec = workertest.StructOf(map[string]any{"command": strings.Repeat("x", 1950<<10)})
	// Switchyard's own client would not send this, but the server accepts it.
	unguarded, err := client.Dial(client.Options{HostPort: c.Server.Address(), Logger: sdklog.NewStructuredLogger(c.Logger)})
	if err != nil {
		t.Fatal(err)
	}
	defer unguarded.Close()
	run := c.SubmitBy(unguarded, in).Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"large": "failed payload", "small": "completed", "after": "completed"})
	if text := run.Tasks["large"].GetError(); !strings.Contains(text, "too large") {
		t.Errorf("error: %q", text)
	}
}
