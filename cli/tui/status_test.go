package tui

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	v1 "switchyard/proto/switchyard/v1"
)

func told(changes []Change) []string {
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.Name+" "+c.Task.GetState())
	}
	return lines
}

func TestApplyReturnsChangesInOrder(t *testing.T) {
	b := NewStatus("r-1")
	first := &v1.WatchRunResponse{TaskCount: 3, Run: &v1.Run{Id: "r-1", State: "running", Tasks: map[string]*v1.Task{
		"a": {State: "pending"}, "b": {State: "pending", DependsOn: []string{"a"}}, "c": {State: "queued"},
	}}}
	if got, want := told(b.Apply(proto.CloneOf(first))), []string{"c queued"}; !slices.Equal(got, want) {
		t.Errorf("at first: %v, want %v", got, want)
	}
	if got := b.Apply(first); len(got) > 0 {
		t.Errorf("the same again tells %v", told(got))
	}
	got := told(b.Apply(&v1.WatchRunResponse{Run: &v1.Run{Id: "r-1", State: "running", Tasks: map[string]*v1.Task{
		"b": {State: "running", Node: "n", DependsOn: []string{"a"}, StartedAt: after(2)},
		"a": {State: "completed", Node: "n", CompletedAt: after(1)},
		"c": {State: "queued", Error: "no room"},
	}}}))
	if want := []string{"a completed", "b running", "c queued"}; !slices.Equal(got, want) {
		t.Errorf("then: %v, want %v", got, want)
	}
	if diff := cmp.Diff(map[string]int{"completed": 1, "running": 1, "queued": 1}, b.counts()); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownTasksArePending(t *testing.T) {
	b := NewStatus("r-1")
	b.Apply(&v1.WatchRunResponse{TaskCount: 5, Run: &v1.Run{Tasks: map[string]*v1.Task{"a": {State: "running"}}}})
	if got := b.counts()["pending"]; got != 4 {
		t.Errorf("%d pending, want 4", got)
	}
	if got := b.Run().GetId(); got != "r-1" {
		t.Errorf("the id is %q", got)
	}
}

// TestStatusFollowsAnyRun checks that the status ends up equal to the run however the messages are split, that a
// repeated message changes nothing, and that parents come before children.
func TestStatusFollowsAnyRun(t *testing.T) {
	states := []string{"pending", "queued", "assigned", "running", "completed", "failed", "skipped", "cancelled"}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 12).Draw(t, "tasks")
		parents := map[string][]string{}
		for i := range size {
			for j := range i {
				if rapid.Bool().Draw(t, "edge") {
					name := fmt.Sprint("t", i)
					parents[name] = append(parents[name], fmt.Sprint("t", j))
				}
			}
		}
		b, want := NewStatus("r"), map[string]*v1.Task{}
		for range rapid.IntRange(1, 20).Draw(t, "messages") {
			part := map[string]*v1.Task{}
			for range rapid.IntRange(0, size).Draw(t, "changed") {
				name := fmt.Sprint("t", rapid.IntRange(0, size-1).Draw(t, "task"))
				part[name] = &v1.Task{State: rapid.SampledFrom(states).Draw(t, "state"), DependsOn: parents[name]}
			}
			maps.Copy(want, part)
			m := &v1.WatchRunResponse{TaskCount: int32(size), Run: &v1.Run{Id: "r", State: "running", Tasks: part}}
			b.Apply(m)
			if again := b.Apply(m); len(again) > 0 {
				t.Fatalf("the same message again tells %v", told(again))
			}
		}
		if diff := cmp.Diff(want, b.tasks, cmp.Comparer(func(x, y *v1.Task) bool { return proto.Equal(x, y) })); diff != "" {
			t.Fatal(diff)
		}
		place := map[string]int{}
		for i, name := range b.order() {
			place[name] = i
		}
		for name, task := range want {
			for _, parent := range task.GetDependsOn() {
				if at, there := place[parent]; there && at > place[name] {
					t.Fatalf("%s stands before its parent %s", name, parent)
				}
			}
		}
	})
}
