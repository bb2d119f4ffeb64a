package gateway

import (
	"testing"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// TestFilterLeavesTheCachedTasksAlone lists the tasks of an ended, cached run with a filter and then without one.
func TestFilterLeavesTheCachedTasksAlone(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "filtered-tasks")
	end(t, id, "cancelled")
	for _, filter := range []struct {
		state string
		want  int
	}{{"", 2}, {v1.TaskCompleted, 0}, {"", 2}} {
		res, err := f.client.ListRunTasks(t.Context(), connect.NewRequest(&v1.ListRunTasksRequest{Id: id, State: filter.state}))
		if err != nil {
			t.Fatalf("state %q: %v", filter.state, err)
		}
		if len(res.Msg.GetItems()) != filter.want {
			t.Errorf("state %q: %d tasks, want %d", filter.state, len(res.Msg.GetItems()), filter.want)
		}
	}
}
