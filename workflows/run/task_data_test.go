package run_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
