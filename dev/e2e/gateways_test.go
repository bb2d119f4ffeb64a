package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/dev/processes"
)

// TestWorkAndWatchersMoveToAnotherGateway kills the gateway of a worker while the worker runs 20 tasks, and while clients follow
// the run through that gateway. The tasks end, the node can be entered, and nothing is lost or doubled.
func TestWorkAndWatchersMoveToAnotherGateway(t *testing.T) {
	t.Parallel()
	const tasks = 20
	dir := t.TempDir()
	s := startDev(t, "--nodes", "0")
	first, at := startGateway(t, s.Temporal, "127.0.0.1:0", s.Store)
	both := at + "," + s.Gateway
	worker := startWorker(t, s.Temporal, both, "mover", "--max-parallel", "40")
	definition := fmt.Sprintf(`
name: moved
tasks:
  each: { type: shell, parallel: %d, resources: { cores: 0 }, spec: { command: 'echo "begin $SWITCHYARD_INDEX"; %s; echo "end $SWITCHYARD_INDEX"' } }
  wait: { type: shell, resources: { cores: 0 }, spec: { command: '%s' } }
`, tasks, gate(dir, "end"), gate(dir, "last"))
	id := s.Submit(t, definition)
	watch := start(t, "runs", "watch", id, "-o", "jsonl", "--gateway", both)
	logs := start(t, "runs", "logs", "-f", id, "each", "--gateway", both)
	processes.Await(t, "all tasks have begun", func() bool { return strings.Count(logs.Stdout.String(), "begin ") == tasks })
	killed := time.Now()
	first.Signal(syscall.SIGKILL)
	first.Wait()
	open(t, dir, "end")
	s.AwaitTask(t, id, "each", "completed")
	processes.Await(t, "the node can be entered", func() bool {
		code, stdout, _ := run(t, "runs", "exec", id, "wait", "--gateway", both, "--", "echo", "inside")
		return code == 0 && stdout == "inside\n"
	})
	awaitLog(t, s.Gateway, id, "each", "has all lines", func(log string) bool {
		return strings.Count(log, "begin ") == tasks && strings.Count(log, "end ") == tasks
	})
	t.Logf("everything works %s after the kill", time.Since(killed))
	open(t, dir, "last")
	if code := watch.Wait(); code != 0 {
		t.Errorf("the watcher exits with %d: %s", code, watch.Stderr.String())
	}
	if code := logs.Wait(); code != 0 {
		t.Errorf("the reader of the logs exits with %d: %s", code, logs.Stderr.String())
	}
	for what, text := range map[string]string{"the watcher": watch.Stdout.String(), "the reader of the logs": logs.Stdout.String()} {
		lines := map[string]int{}
		for line := range strings.Lines(text) {
			if lines[line]++; lines[line] > 1 {
				t.Errorf("%s prints twice: %s", what, line)
			}
		}
	}
	for i := range tasks {
		for _, text := range []string{"begin", "end"} {
			if line := fmt.Sprintf("%s %d\n", text, i); strings.Count(logs.Stdout.String(), line) != 1 {
				t.Errorf("the log has %q %d times", line, strings.Count(logs.Stdout.String(), line))
			}
		}
	}
	if stderr := worker.Stderr.String(); strings.Contains(stderr, "is lost") || strings.Contains(stderr, "is dropped") {
		t.Errorf("the node lost something:\n%s", processes.Tail(stderr))
	}
}
