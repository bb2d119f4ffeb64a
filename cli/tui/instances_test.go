package tui

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
)

// fan returns a run whose task "each" has n instances, every seventh of them failed.
func fan(n int32) *v1.Run {
	run := nightly()
	each := &v1.Task{State: "running", StartedAt: after(1), Count: &n, Counts: map[string]int32{}, DependsOn: []string{"fetch"}}
	for i := range n {
		instance := &v1.Instance{Index: i, State: "completed", Node: "local-1", StartedAt: after(1), CompletedAt: after(2)}
		switch {
		case i%7 == 3:
			instance.State, instance.Error, instance.Attempt = "dead_letter", fmt.Sprintf("exit code %d", i), 3
		case i > n/2:
			instance = &v1.Instance{Index: i, State: "running", Node: "local-2", StartedAt: after(3)}
		}
		each.Counts[instance.State]++
		each.Instances = append(each.Instances, instance)
	}
	run.Tasks["each"] = each
	return run
}

func TestTableOfAFanOut(t *testing.T) {
	now := begin.Add(7 * time.Second)
	b := StatusOf(fan(100))
	golden.Check(t, "testdata/table-fanout.golden", joined(Table(b, now, 0, plain)))
	golden.Check(t, "testdata/view-fanout.golden", joined(View(b, now, 80, 17, plain)))
	golden.Check(t, "testdata/view-fanout-low.golden", joined(View(b, now, 80, 9, plain)))
	run := nightly()
	run.Tasks["held"] = &v1.Task{State: "pending", Held: true}
	run.Tasks["cached"] = &v1.Task{State: "completed", CachedFrom: "nightly-77777777"}
	run.Tasks["child"] = &v1.Task{State: "running", ChildRun: "other-99999999", StartedAt: after(1)}
	run.Tasks["ask"] = &v1.Task{State: "paused", Reason: "approval", Error: "ship it?"}
	golden.Check(t, "testdata/table-notes.golden", joined(Table(StatusOf(run), now, 0, plain)))
}

func TestViewOfAFanOutFitsTheTerminal(t *testing.T) {
	b := StatusOf(fan(700))
	for height := range 40 {
		if lines := View(b, begin, 80, height, plain); len(lines) > max(height-1, 4) {
			t.Errorf("%d lines for a height of %d", len(lines), height)
		}
	}
}

// TestInstancesAreMerged checks that instances reported a few at a time result in the same picture as all at once, that
// each change is reported once, and that a new generation starts over.
func TestInstancesAreMerged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := int32(rapid.IntRange(1, 30).Draw(t, "instances"))
		b, whole, told := NewStatus("r"), fan(n), map[string]int{}
		message := func(instances []*v1.Instance) *v1.WatchRunResponse {
			run := proto.CloneOf(whole)
			run.Tasks["each"].Instances = instances
			return &v1.WatchRunResponse{Run: run}
		}
		all := whole.Tasks["each"].Instances
		for at := 0; at < len(all); {
			to := min(len(all), at+rapid.IntRange(1, 7).Draw(t, "piece"))
			for _, c := range b.Apply(message(all[max(0, at-2):to])) {
				if c.Of != "" {
					told[c.Name]++
				}
			}
			at = to
		}
		for i := range n {
			if name := fmt.Sprintf("each[%d]", i); told[name] != 1 {
				t.Fatalf("%s is told %d times", name, told[name])
			}
		}
		now := begin.Add(7 * time.Second)
		want, got := joined(Table(StatusOf(whole), now, 0, plain)), joined(Table(b, now, 0, plain))
		if want != got {
			t.Fatalf("want\n%s\ngot\n%s", want, got)
		}
		again := message(nil)
		again.Run.Generation = 1
		b.Apply(again)
		if left := b.failed("each"); len(left) > 0 {
			t.Fatalf("%v are left of the generation before", left)
		}
	})
}

// TestStatusKeepsABoundedNumberOfInstances checks that only the first instances of a large fan-out are kept.
func TestStatusKeepsABoundedNumberOfInstances(t *testing.T) {
	b := StatusOf(fan(5000))
	if n := len(b.instances["each"]); n != maxInstances {
		t.Errorf("%d are kept", n)
	}
}
