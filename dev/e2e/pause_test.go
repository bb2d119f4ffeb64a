package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

func TestPauseAndKillTask(t *testing.T) {
	t.Parallel()
	pauseAndKillTask(t, 10*time.Minute, time.Second)
}

// TestLongPauseOutlastsTimeout checks that the time in which a task is paused does not count towards its time-out.
func TestLongPauseOutlastsTimeout(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	pauseAndKillTask(t, 45*time.Second, 46*time.Second)
}

// pauseAndKillTask suspends a task with a time-out, lets it continue to its end, and meanwhile kills another task.
func pauseAndKillTask(t *testing.T, timeout, pause time.Duration) {
	s, dir := shared(t), t.TempDir()
	id := s.Submit(t, fmt.Sprintf(`
name: steered
defaults: { resources: { cores: 0 } }
tasks:
  ticks:
    type: shell
    spec: { command: 'while ! test -e %[1]s/enough; do printf x >> %[1]s/ticks; sleep 0.02; done' }
    timeout: %[2]s
  doomed: { type: shell, spec: { command: 'sleep 600' }, retry: { maxRetries: 3, backoffMs: 1 } }
  after: { type: shell, spec: { command: 'true' }, dependsOn: [doomed] }
`, dir, timeout))
	ticks := func() int64 {
		info, err := os.Stat(filepath.Join(dir, "ticks"))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	s.AwaitTask(t, id, "doomed", "running")
	processes.Await(t, "ticks has begun", func() bool { return ticks() > 3 })
	began := time.Now()
	do(t, s.Gateway, 0, "runs", "pause", id, "ticks", "--reason", "lunch")
	if _, stderr := do(t, s.Gateway, 1, "runs", "pause", id, "after"); !strings.Contains(stderr, "switchyard runs hold") {
		t.Errorf("pausing a task that waits says\n%s", stderr)
	}
	if _, stderr := do(t, s.Gateway, 1, "runs", "resume", id, "after"); !strings.Contains(stderr, "not paused") {
		t.Errorf("resuming a task that waits says\n%s", stderr)
	}
	s.AwaitTask(t, id, "ticks", "paused")
	stood := ticks()
	if stdout, _ := do(t, s.Gateway, 0, "runs", "get", id); !strings.Contains(stdout, "paused") || !strings.Contains(stdout, "lunch") {
		t.Errorf("a paused task is shown as\n%s", stdout)
	}

	do(t, s.Gateway, 0, "runs", "kill", id, "doomed", "--reason", "stuck")
	s.AwaitTask(t, id, "doomed", "killed")
	if _, stderr := do(t, s.Gateway, 1, "runs", "kill", id, "doomed"); !strings.Contains(stderr, "ended") {
		t.Errorf("killing twice says\n%s", stderr)
	}

	time.Sleep(time.Until(began.Add(pause)))
	if now := ticks(); now != stood {
		t.Errorf("it has ticked %d times while it was paused", now-stood)
	}
	if state := s.Get(t, id).Tasks["ticks"].State; state != "paused" {
		t.Errorf("ticks is %s", state)
	}
	do(t, s.Gateway, 0, "runs", "resume", id, "ticks")
	processes.Await(t, "it continues", func() bool { return ticks() > stood })
	open(t, dir, "enough")
	if _, stderr := do(t, s.Gateway, 1, "runs", "watch", id); !strings.Contains(stderr, "killed") {
		t.Errorf("the run ends with\n%s", stderr)
	}
	run := s.Get(t, id)
	if run.State != "failed" || run.Tasks["ticks"].State != "completed" || run.Tasks["after"].State != "skipped" || run.Tasks["doomed"].Attempt != 0 {
		t.Errorf("the run ended as %+v", run)
	}
	seen := map[string]bool{}
	for _, e := range ask[list[eventItem]](t, s.Gateway, "runs", "events", id).Items {
		seen[e.Task+" "+e.Event] = true
	}
	for _, want := range []string{"ticks paused", "ticks resumed", "ticks completed", "doomed killed"} {
		if !seen[want] {
			t.Errorf("there is no event %q in %v", want, seen)
		}
	}
}
