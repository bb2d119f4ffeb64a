package gateway

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// eventIDs returns the ids in the data of events.
func eventIDs(t *testing.T, all []sent) []string {
	t.Helper()
	var found []string
	for _, e := range all {
		var message v1.Event
		if e.event == "end" {
			continue
		}
		if err := protojson.Unmarshal([]byte(e.data), &message); err != nil {
			t.Fatal(err)
		}
		found = append(found, message.GetId())
	}
	return found
}

// TestEventStreamOfChildrenContinuesExactly checks that the stream of a run with a large fan-out has the events of all
// its children, and resumes exactly after each. Its ids record the position in each child.
func TestEventStreamOfChildrenContinuesExactly(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "parted-stream", "each")
	const children, instances = 2, 2
	status := &v1.StatusResponse{Run: &v1.Run{Id: id, State: "completed", Tasks: map[string]*v1.Task{}}}
	want := []string{"0-0", "0-1", "0-2"}
	for c := range children {
		from := c * instances
		status.Partitions = append(status.Partitions, &v1.PartitionReport{Task: "each", From: int32(from), Over: true})
		first, number := names.InstanceName("each", from), int64(0)
		for part := range int32(2) {
			var events []*v1.Event
			for k := range instances + 1 {
				e := event(int64(2*c+k), "", "submitted") // belongs to the child only
				if k > 0 {
					e = event(int64(2*c+k), names.InstanceName("each", from+k-1), []string{"queued", "completed"}[part])
				}
				e.Id = names.EventID(0, first, number)
				number++
				if events = append(events, e); k > 0 {
					want = append(want, e.GetId())
				}
			}
			f.storeEvents(t, names.FanOut{Run: id, Task: "each", From: from}.ID(), 0, part, events...)
		}
	}
	f.storeEvents(t, id, 0, 0, numbered(0, 0, 3)...)
	if err := f.config.Store.PutMessage(t.Context(), storekey.Status(id, 0), status); err != nil {
		t.Fatal(err)
	}
	fanOut(t, id, "each", "completed", children*instances, map[string]int32{"completed": children * instances})
	end(t, id, "completed")
	slices.Sort(want)
	path := "/v1/runs/" + id + "/events"
	s, _ := f.openStream(t, path)
	all := s.rest()
	got := eventIDs(t, all)
	if sorted := slices.Sorted(slices.Values(got)); !slices.Equal(sorted, want) || len(all) != len(want)+1 {
		t.Fatalf("the stream has %v, want %v", got, want)
	}
	for k, e := range all[:len(all)-1] {
		s, _ := f.openStream(t, path, "Last-Event-ID", e.id)
		if rest := eventIDs(t, s.rest()); !slices.Equal(rest, got[k+1:]) {
			t.Errorf("after %s come %v, want %v", e.id, rest, got[k+1:])
		}
		// The short id that lists use loses nothing either.
		s, _ = f.openStream(t, path, "Last-Event-ID", got[k])
		rest := eventIDs(t, s.rest())
		for _, id := range got[k+1:] {
			if !slices.Contains(rest, id) {
				t.Errorf("after %s alone, %s is lost", got[k], id)
			}
		}
		if slices.Contains(rest, got[k]) {
			t.Errorf("%s has come twice", got[k])
		}
	}
	if last := all[len(all)-2].id; !strings.Contains(last, "~") {
		t.Errorf("the last id is %s", last)
	}
}
