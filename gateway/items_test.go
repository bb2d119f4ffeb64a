package gateway

import (
	"fmt"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// TestInstancesShowTheirItems checks that instances of open and ended runs show their items, whether the run
// or the store holds them.
func TestInstancesShowTheirItems(t *testing.T) {
	t.Parallel()
	f := start(t)
	list, err := structpb.NewList([]any{"a.png", map[string]any{"os": "linux", "go": 1.25}})
	if err != nil {
		t.Fatal(err)
	}
	key := storekey.List("items", "some")
	if err := f.config.Store.PutMessage(t.Context(), key, &v1.ItemList{Items: list.GetValues()}); err != nil {
		t.Fatal(err)
	}
	instances := []*v1.Instance{{Index: 0, State: "completed", CompletedAt: timestamppb.Now()}, {Index: 1, State: "completed", CompletedAt: timestamppb.Now()}}
	for name, items := range map[string]*v1.Items{"inline": {List: list}, "stored": {Key: key}} {
		id := f.submit(t, "items-"+name, "each")
		signal(t, id, setSignal, &v1.StatusResponse{Items: map[string]*v1.Items{"each": items}})
		fanOut(t, id, "each", "completed", 2, map[string]int32{"completed": 2}, instances...)
		shown := func() string {
			page, err := f.client.ListInstances(t.Context(), connect.NewRequest(&v1.ListInstancesRequest{Id: id, Task: "each"}))
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, i := range page.Msg.GetItems() {
				all = append(all, i.GetItem())
			}
			return fmt.Sprintf("%q", all)
		}
		const want = `["a.png" "{\"go\":1.25,\"os\":\"linux\"}"]`
		if got := shown(); got != want {
			t.Errorf("%s: an open run shows %s", name, got)
		}
		kept := &v1.StatusResponse{Run: &v1.Run{Id: id, State: "completed"}, Items: map[string]*v1.Items{"each": items}}
		if err := f.config.Store.PutMessage(t.Context(), storekey.Status(id, 0), kept); err != nil {
			t.Fatal(err)
		}
		end(t, id, "completed")
		eventually(t, "the run has ended", func() bool { return f.get(t, id).GetState() == "completed" })
		if got := shown(); got != want {
			t.Errorf("%s: a run that has ended shows %s", name, got)
		}
	}
}
