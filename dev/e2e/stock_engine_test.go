//go:build engines

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

// TestStockServer runs on an unmodified `temporal server start-dev`.
func TestStockServer(t *testing.T) {
	t.Parallel()
	temporal := tool(t, "temporal")
	port := testneeds.FreePort(t)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	server := exec.Command(temporal, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", fmt.Sprint(port), "--log-level", "error")
	server.Env = processes.CleanEnv()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	processes.Await(t, "the server has its namespace", func() bool {
		_, err := outputOf(t, temporal, "operator", "namespace", "describe", "--address", address, "--namespace", "default")
		return err == nil
	})
	env := []string{"TEMPORAL_ADDRESS=" + address}

	t.Run("run", func(t *testing.T) {
		p := startWith(t, env, "run", "dev/examples/notify-failure.yaml", "-o", "json")
		if code := p.Wait(); code != 1 {
			t.Fatalf("exit code %d, want 1", code)
		}
		d := processes.ParseRun(t, p.Stdout.String())
		if d.State != "failed" || d.Tasks["notify-failure"].State != "completed" {
			t.Errorf("run %s, notify-failure %s", d.State, d.Tasks["notify-failure"].State)
		}
		out, err := outputOf(t, temporal, "workflow", "describe", "--address", address, "--workflow-id", d.ID)
		if err != nil || !strings.Contains(out, "FAILED") && !strings.Contains(out, "Failed") || !strings.Contains(out, `"build"`) {
			t.Errorf("temporal describes the run as %v\n%s", err, out)
		}
	})

	t.Run("gateway and worker", func(t *testing.T) {
		store := filepath.Join(t.TempDir(), "store")
		gateway := startWith(t, env, "gateway", "--address", "127.0.0.1:0", "--store", store)
		url := gateway.Field("Gateway")
		startWith(t, env, "worker", "--name", "box-1", "--label", "server", "--store", store)
		definition, pids := processTree(t, false)
		id := (&processes.Stack{Program: gateway, Gateway: url}).Submit(t, definition)
		tree := pids()
		if out, err := outputOf(t, temporal, "workflow", "signal", "--address", address, "--workflow-id", id, "--name", "cancel"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if code, _, _ := run(t, "runs", "watch", id, "--gateway", url); code != 1 {
			t.Errorf("watch exits with %d, want 1", code)
		}
		if !dead(tree) {
			t.Error("a process of the task is still alive")
		}
	})
}
