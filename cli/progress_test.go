package cli

import (
	"strings"
	"testing"
	"time"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

func TestOnlyLongWaitsGetALine(t *testing.T) {
	out, now := newBuffer(), begin
	sys := &system{screen: tui.NewScreen(out, nil), getenv: func(string) string { return "" }, now: func() time.Time { return now }, zone: time.UTC}
	p, b := newProgress(sys), tui.NewBoard("r-1")
	tell := func(tasks map[string]*v1.Task) {
		t.Helper()
		changes := b.Apply(&v1.WatchRunResponse{TaskCount: 4, Run: &v1.Run{Id: "r-1", State: "running", Tasks: tasks}})
		must(t, p.changed(b, changes))
		must(t, p.tick(b))
	}
	tell(map[string]*v1.Task{
		"short": {State: "queued", Error: "no nodes"},
		"long":  {State: "queued", Error: "no nodes"},
		"slot":  {State: "queued"},
		"again": {State: "queued", Attempt: 1, Node: "n", Error: "exit code 1", ScheduledAfter: after(2)},
	})
	now = now.Add(waitWorthTelling / 2)
	tell(map[string]*v1.Task{"short": {State: "assigned", Node: "n"}, "long": {State: "queued", Error: "n has 0 cores free"}})
	now = now.Add(waitWorthTelling / 2)
	tell(nil)
	now = now.Add(waitWorthTelling)
	tell(nil)
	want := `15:09:26  run r-1
15:09:26  again  queued       n  attempt 1  again in 2.0s: exit code 1
15:09:26  short  assigned     n  attempt 0
15:09:26  long   queued                     n has 0 cores free
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, strings.TrimSpace(want))
	}
}
