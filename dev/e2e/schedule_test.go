package e2e

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/schedules"
	"switchyard/dev/processes"
	"switchyard/dev/temporaltest"
	"switchyard/dev/testneeds"
)

// TestCommandsOnScheduledRun checks that each command on a run accepts the ID that a schedule creates, which contains
// colons.
func TestCommandsOnScheduledRun(t *testing.T) {
	t.Parallel()
	s, dir := shared(t), t.TempDir()
	do(t, s.Gateway, 0, "workflows", "put", write(t, fmt.Sprintf(`
name: colons
schedule: { cron: "@yearly", overlap: allow }
defaults: { resources: { cores: 0 } }
tasks:
  first: { type: shell, spec: { command: 'echo one; %[1]s' } }
  kept: { type: shell, dependsOn: [first], spec: { command: 'true' } }
  each: { type: shell, parallel: 3, spec: { command: 'echo $SWITCHYARD_INDEX' } }
  endless: { type: shell, continueOnError: true, spec: { command: 'sleep 600' } }
  other: { type: shell, continueOnError: true, spec: { command: 'sleep 600' } }
  yes: { type: approval, spec: { message: 'now?' } }
  no: { type: approval, continueOnError: true, spec: { message: 'all of it?' } }
  broken: { type: shell, retry: { maxRetries: 1, backoffMs: 10 }, spec: { command: 'test -e %[2]s/mended' } }
`, gate(dir, "first"), dir)))
	stdout, _ := do(t, s.Gateway, 0, "schedules", "trigger", "colons")
	id := strings.TrimSpace(stdout)
	if !strings.Contains(id, ":") {
		t.Fatalf("the id %s is an easy one", id)
	}
	for _, task := range []string{"first", "endless", "other"} {
		s.AwaitTask(t, id, task, "running")
	}
	for task, state := range map[string]string{"each": "completed", "yes": "paused", "no": "paused"} {
		s.AwaitTask(t, id, task, state)
	}
	for _, command := range []struct{ args, prints string }{
		{"get " + id, "colons"},
		{"get " + id + " first", "running"},
		{"get " + id + " --definition", "colons"},
		{"instances " + id + " each", "completed"},
		{"events " + id, "first"},
		{"explain " + id + " kept", "first"},
		{"graph " + id, "kept"},
		{"timeline " + id, "first"},
		{"pause " + id, ""},
		{"resume " + id, ""},
		{"hold " + id + " kept", ""},
		{"release " + id + " kept", ""},
		{"approve " + id + " yes", ""},
		{"reject " + id + " no", ""},
		{"kill " + id + " endless", ""},
		{"cancel " + id + " other", ""},
	} {
		stdout, _ := do(t, s.Gateway, 0, append([]string{"runs"}, strings.Fields(command.args)...)...)
		if !strings.Contains(stdout, command.prints) {
			t.Errorf("runs %s prints\n%s\nwithout %q", command.args, stdout, command.prints)
		}
	}
	for _, path := range []string{"/v1/runs/" + id, "/v1/runs/" + url.PathEscape(id), "/v1/runs/" + strings.ReplaceAll(id, ":", "%3A"), "/v1/runs/" + id + "/definition"} {
		if body := processes.Fetch(t, s.Gateway+path); !strings.Contains(body, `"colons"`) {
			t.Errorf("%s answers %s", path, body)
		}
	}
	open(t, dir, "first")
	s.End(t, id)
	awaitLogText(t, s.Gateway, id, "first", "one")
	events := map[string]bool{}
	for _, e := range ask[list[eventItem]](t, s.Gateway, "runs", "events", id).Items {
		events[e.Event] = true
	}
	for _, want := range []string{"paused", "resumed", "held", "released", "cancelled", "killed"} {
		if !events[want] {
			t.Errorf("there is no event %s in %v", want, events)
		}
	}
	open(t, dir, "mended")
	processes.Await(t, "its dead letter is listed", func() bool {
		stdout, _ := do(t, s.Gateway, 0, "dlq", "list")
		return strings.Contains(stdout, id)
	})
	do(t, s.Gateway, 0, "dlq", "retry", id, "broken")
	if d := s.End(t, id); d.State != "completed" {
		t.Errorf("after the retry it is %s", d.State)
	}
	do(t, s.Gateway, 0, "runs", "retry", id, "--from", "other")
	s.AwaitTask(t, id, "other", "running")
	do(t, s.Gateway, 0, "runs", "cancel", id)
	s.End(t, id)
	again, _ := do(t, s.Gateway, 0, "runs", "rerun", id)
	do(t, s.Gateway, 0, "runs", "cancel", "--force", strings.TrimSpace(again))
}

// scheduleItem is a schedule as JSON prints it.
type scheduleItem struct {
	Missed int
	Runs   []struct {
		RunID       string `json:"runId"`
		ScheduledAt time.Time
	}
}

// runItem is a run in a list as JSON prints it.
type runItem struct{ State string }

// scheduledRuns returns the runs of a workflow that its schedule has started, newest first.
func scheduledRuns(t *testing.T, gateway, workflow string) []runItem {
	t.Helper()
	return ask[list[runItem]](t, gateway, "runs", "list", "--workflow", workflow, "--trigger", "schedule", "--limit", "200").Items
}

// TestLongScheduleWhileGatewaysAreAway lets Temporal start runs while there is no gateway. A gateway that starts later
// carries them.
func TestLongScheduleWhileGatewaysAreAway(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	server, err := temporaltest.Start(temporaltest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.Dial(client.Options{HostPort: server.Address()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	store := filepath.Join(t.TempDir(), "store")
	g, url := startGateway(t, server.Address(), "127.0.0.1:0", store)
	startWorker(t, server.Address(), url, "box")
	do(t, url, 0, "workflows", "put", write(t, "name: beat\nschedule: { cron: '@every 1s', overlap: allow }\ntasks: { a: { type: shell, spec: { command: 'true' } } }\n"))
	g.Signal(syscall.SIGKILL)
	g.Wait()
	before, err := schedules.New(c, client.DefaultNamespace).Get(t.Context(), "beat")
	if err != nil {
		t.Fatal(err)
	}
	processes.Await(t, "runs start without a gateway", func() bool {
		now, err := schedules.New(c, client.DefaultNamespace).Get(t.Context(), "beat")
		return err == nil && now.GetStarted() >= before.GetStarted()+3
	})
	_, _ = startGateway(t, server.Address(), strings.TrimPrefix(url, "http://"), store)
	do(t, url, 0, "schedules", "pause", "beat")
	processes.Await(t, "all of them have completed", func() bool {
		runs := scheduledRuns(t, url, "beat")
		return int32(len(runs)) >= before.GetStarted()+3 && !slices.ContainsFunc(runs, func(r runItem) bool { return r.State != "completed" })
	})
}

// TestLongScheduleOverKill kills a stack with a workflow that starts every minute, and restarts it more than a minute
// later. Missed times within catchUp run once, and older ones do not run.
func TestLongScheduleOverKill(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	db := filepath.Join(t.TempDir(), "dev.db")
	s := startDev(t, "--db", db)
	do(t, s.Gateway, 0, "workflows", "put", write(t, "name: minutely\nschedule: { cron: '* * * * *', overlap: queue }\ntasks: { a: { type: shell, spec: { command: 'true' } } }\n"))
	do(t, s.Gateway, 0, "workflows", "put", write(t, "name: fresh\nschedule: { cron: '@every 5s', overlap: queue, catchUp: 10s }\ntasks: { a: { type: shell, spec: { command: 'true' } } }\n"))
	ran := func(n int) bool {
		runs := scheduledRuns(t, s.Gateway, "minutely")
		return len(runs) >= n && !slices.ContainsFunc(runs, func(r runItem) bool { return r.State != "completed" })
	}
	processes.Await(t, "the first minute has its run", func() bool { return ran(1) })
	s.Signal(syscall.SIGKILL)
	s.Wait()
	// A minute and some seconds pass without a server.
	time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 20*time.Second)))
	s = startDev(t, "--db", db)
	processes.Await(t, "the missed minute and the next have their runs", func() bool { return ran(3) })
	runs := ask[scheduleItem](t, s.Gateway, "schedules", "get", "minutely").Runs
	for i := range runs[1:] {
		if gap := runs[i].ScheduledAt.Sub(runs[i+1].ScheduledAt); gap != time.Minute {
			t.Errorf("run %s is for %s after run %s", runs[i].RunID, gap, runs[i+1].RunID)
		}
	}
	processes.Await(t, "the schedule counts the times that it has missed", func() bool {
		return ask[scheduleItem](t, s.Gateway, "schedules", "get", "fresh").Missed > 0
	})
}
