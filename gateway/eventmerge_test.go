package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"go.temporal.io/sdk/client"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// TestEventsOfChildrenAreMerged merges the events of the children that carry a large fan-out into those of the run, for any
// page size, and lists those of a single instance.
func TestEventsOfChildrenAreMerged(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "merged", "each", "other")
	const children, instances = 5, 3
	status := &v1.StatusResponse{Run: &v1.Run{Id: id, State: "completed", Tasks: map[string]*v1.Task{}}}
	run := []*v1.Event{event(0, "", "submitted"), event(0, "each", "submitted"), event(1, "each", "expanded"), event(1, "other", "queued")}
	type told struct {
		at   int64
		text string
	}
	var all []told
	for c := range int64(children) {
		from := int32(c * instances)
		report := &v1.PartitionReport{Task: "each", From: from, Over: true}
		status.Partitions = append(status.Partitions, report)
		child := names.FanOut{Run: id, Task: "each", From: int(from)}.ID()
		begin := 2 + 3*(c/4) // four at once
		for part := range int32(2) {
			events := []*v1.Event{event(begin, "", "submitted"), event(begin, "each", "submitted")}
			for i := range int64(instances) {
				what := []string{"queued", "completed"}[part]
				at := begin + 2*int64(part) + i/3
				events = append(events, event(at, names.InstanceName("each", int(from)+int(i)), what))
				all = append(all, told{at, fmt.Sprintf("each[%d] %s", int64(from)+i, what)})
			}
			f.storeEvents(t, child, 0, part, events...)
		}
	}
	run = append(run, event(20, "each", "completed"), event(21, "", "completed"))
	f.storeEvents(t, id, 0, 0, run...)
	if err := f.config.Store.PutMessage(t.Context(), storekey.Status(id, 0), status); err != nil {
		t.Fatal(err)
	}
	fanOut(t, id, "each", "completed", children*instances, map[string]int32{"completed": children * instances})
	end(t, id, "completed")

	sorted := func(words []string) []string { return slices.Sorted(slices.Values(words)) }
	want := words(run)
	for _, e := range all {
		want = append(want, e.text)
	}
	times := map[string]int64{}
	for _, e := range all {
		times[e.text] = e.at
	}
	for _, size := range []int32{0, 1, 7} {
		got := f.events(t, id, "", size, func() {})
		if !slices.Equal(sorted(got), sorted(want)) {
			t.Fatalf("pages of %d: got %d events %v, want %d", size, len(got), got, len(want))
		}
		ofInstances := slices.DeleteFunc(slices.Clone(got), func(text string) bool { return times[text] == 0 })
		if !slices.IsSortedFunc(ofInstances, func(a, b string) int { return cmp.Compare(times[a], times[b]) }) {
			t.Errorf("pages of %d are not in order: %v", size, got)
		}
		if got[0] != " submitted" || got[len(got)-1] != " completed" {
			t.Errorf("pages of %d: %v", size, got)
		}
	}
	// The scripted run names a child as the holder of the instance.
	kept := &v1.StatusResponse{Run: &v1.Run{Tasks: map[string]*v1.Task{"each": {Instances: []*v1.Instance{{Index: 7, State: "completed"}}}}}}
	if err := f.config.Store.PutMessage(t.Context(), storekey.Status(names.FanOut{Run: id, Task: "each", From: childFrom}.ID(), 0), kept); err != nil {
		t.Fatal(err)
	}
	if got := f.events(t, id, "each[7]", 1, func() {}); !slices.Equal(got, []string{"each[7] queued", "each[7] completed"}) {
		t.Errorf("of one instance: %v", got)
	}
	if got := f.events(t, id, "other", 0, nil); !slices.Equal(got, []string{"other queued"}) {
		t.Errorf("of another task: %v", got)
	}
}

// TestEventsOfAnOpenChildAreQueried queries an open child for the events that it has not stored yet.
func TestEventsOfAnOpenChildAreQueried(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "merged-live", "each")
	child := names.FanOut{Run: id, Task: "each", From: childFrom}.ID()
	_, err := temporalClient.SignalWithStartWorkflow(t.Context(), child, eventsSignal,
		&v1.EventsResponse{Slices: 1, Events: []*v1.Event{event(3, "each[5]", "completed")}},
		client.StartWorkflowOptions{ID: child, TaskQueue: names.ControlQueue}, names.FanOutWorkflow, &v1.RunInput{Partition: &v1.Partition{From: childFrom, To: 10}})
	if err != nil {
		t.Fatal(err)
	}
	defer signal(t, child, endSignal, nil)
	f.storeEvents(t, child, 0, 0, event(1, "each[4]", "queued"), event(2, "each[5]", "queued"))
	signal(t, id, eventsSignal, &v1.EventsResponse{Events: []*v1.Event{event(0, "", "submitted"), event(0, "each", "expanded")}})
	signal(t, id, setSignal, &v1.StatusResponse{
		Run:        &v1.Run{Tasks: map[string]*v1.Task{"each": {State: "running", Count: new(int32), Counts: map[string]int32{}}}},
		Partitions: []*v1.PartitionReport{{Task: "each", From: childFrom}},
	})
	fanOut(t, id, "each", "running", 10, map[string]int32{"pending": 10})
	defer end(t, id, "completed")
	want := []string{" submitted", "each expanded", "each[4] queued", "each[5] queued", "each[5] completed"}
	for _, size := range []int32{0, 2} {
		if got := f.events(t, id, "", size, func() {}); !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %v, want %v", size, got, want)
		}
	}
}
