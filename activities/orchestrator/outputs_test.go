package orchestrator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchyard/activities/artifacts"
	"switchyard/activities/results"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

// outputsOf returns the list in an answer of Collect, wherever it is stored.
func outputsOf(t *testing.T, c *Control, view *historyv1.FanOutView) []any {
	t.Helper()
	whole, err := results.ResolveView(t.Context(), c.Store, "each", &historyv1.ParentView{FanOut: view}, 0)
	if err != nil {
		t.Fatal(err)
	}
	list := whole.GetFanOut().GetOutputs().GetList()
	if list == nil {
		list = condition.EmptyOutputs(int(view.GetCount()))
	}
	return list.AsSlice()
}

func collect(t *testing.T, c *Control, req *historyv1.CollectRequest) *historyv1.FanOutView {
	t.Helper()
	req.RunId, req.Task = "r-1", "each"
	view, err := c.Collect(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func TestCollect(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	alone, batch := storekey.Result("r-1", 0, "each[2]", 0), storekey.Batch("r-1", 0, "each[3-5]", 0, 0)
	for key, res := range map[string]*historyv1.ExecuteResponse{
		alone: {State: "completed", Result: &v1.TaskResult{Output: objectOf(t, map[string]any{"n": 2})}},
		batch: {State: "completed", Batch: []*historyv1.MemberResult{
			{Index: 3, Result: &v1.TaskResult{Output: objectOf(t, map[string]any{"n": 3})}}, {Index: 4, State: "failed"}, {Index: 5},
		}},
	} {
		if err := c.Store.PutMessage(t.Context(), key, res); err != nil {
			t.Fatal(err)
		}
	}
	view := collect(t, c, &historyv1.CollectRequest{Items: []*historyv1.CollectItem{
		{State: "completed", Output: objectOf(t, map[string]any{"n": 0})}, {State: "completed"}, {State: "completed", Record: alone},
		{State: "completed", Record: store.MemberReference(batch, 3)}, {State: "dead_letter"}, {State: "stopped", Record: store.MemberReference(batch, 5)},
	}})
	n := func(i int) any { return map[string]any{"n": float64(i)} }
	if diff := cmp.Diff([]any{n(0), map[string]any{}, n(2), n(3), nil, map[string]any{}}, outputsOf(t, c, view)); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if view.GetCount() != 6 || view.GetCompleted() != 5 || view.GetFailed() != 1 || view.GetError() != "" || view.GetOutputs().GetKey() != "" {
		t.Errorf("view %v", view)
	}
	if diff := cmp.Diff(map[int32]string{4: "dead_letter", 5: "stopped"}, view.GetOutputs().GetStates()); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if view := collect(t, c, &historyv1.CollectRequest{Items: []*historyv1.CollectItem{{State: "completed"}, {State: "completed", Record: store.MemberReference(batch, 5)}}}); view.GetOutputs() != nil || view.GetCount() != 2 || view.GetError() != "" {
		t.Errorf("of instances that left nothing: %v", view)
	}
	if view := collect(t, c, &historyv1.CollectRequest{Items: []*historyv1.CollectItem{{State: "completed"}, {State: "failed"}}}); len(view.GetOutputs().GetList().GetValues()) != 2 {
		t.Errorf("of one that did not complete: %v", view)
	}
}

// The lists of parts are combined into one list, which is stored if it is large.
func TestCollectParts(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	part := func(from, count int) *historyv1.CollectPartition {
		req := &historyv1.CollectRequest{From: int32(from)}
		for i := range count {
			req.Items = append(req.Items, &historyv1.CollectItem{State: "completed", Output: objectOf(t, map[string]any{"number": fmt.Sprintf("instance %d", from+i)})})
		}
		view := collect(t, c, req)
		if view.GetOutputs().GetKey() == "" {
			t.Fatalf("a small list: %v", view)
		}
		return &historyv1.CollectPartition{Key: view.GetOutputs().GetKey(), Count: view.GetCount()}
	}
	view := collect(t, c, &historyv1.CollectRequest{Partitions: []*historyv1.CollectPartition{part(0, 500), {Count: 3}, part(503, 700)}})
	got := outputsOf(t, c, view)
	if view.GetCount() != 1203 || view.GetOutputs().GetKey() == "" || len(got) != 1203 {
		t.Fatalf("%d outputs, view %v", len(got), view)
	}
	for i, output := range got {
		number, _ := output.(map[string]any)["number"].(string)
		if want := fmt.Sprintf("instance %d", i); number != want && (i < 500 || i >= 503) {
			t.Fatalf("output %d is %v", i, output)
		}
	}
	// The states of other parts are kept even if a part's outputs are too large or missing.
	unfinished := collect(t, c, &historyv1.CollectRequest{Stored: true, Items: []*historyv1.CollectItem{{State: "completed"}, {State: "failed"}}})
	large := &historyv1.CollectRequest{Stored: true, Items: []*historyv1.CollectItem{{State: "lost"}}}
	for range 9 {
		large.Items = append(large.Items, &historyv1.CollectItem{State: "completed", Output: objectOf(t, map[string]any{"text": strings.Repeat("x", 1<<20)})})
	}
	refused := collect(t, c, large)
	parts := []*historyv1.CollectPartition{{Count: 3}, {Key: unfinished.GetOutputs().GetKey(), Count: 2}, {Count: 2, State: "skipped"}}
	if view := collect(t, c, &historyv1.CollectRequest{Partitions: parts}); view.GetError() != "" || !cmp.Equal(view.GetOutputs().GetStates(), map[int32]string{4: "failed", 5: "skipped", 6: "skipped"}) ||
		!cmp.Equal(outputsOf(t, c, view), []any{map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}, nil, nil, nil}) {
		t.Errorf("of parts that did not complete: %v", view)
	}
	parts = append(parts, &historyv1.CollectPartition{Key: refused.GetOutputs().GetKey(), Count: 10})
	if view := collect(t, c, &historyv1.CollectRequest{Partitions: parts}); !strings.Contains(view.GetError(), "larger than 8 MiB") || view.GetOutputs().GetStates()[7] != "lost" || view.GetOutputs().GetList() != nil {
		t.Errorf("with a part whose outputs are too large: %v", view)
	}
	if view := collect(t, c, &historyv1.CollectRequest{Partitions: []*historyv1.CollectPartition{{Count: 3}, {Count: 4}}}); view.GetOutputs() != nil || view.GetCount() != 7 {
		t.Errorf("of parts that left nothing: %v", view)
	}
}

// If outputs cannot be collected, their reader learns why. The end of the task does not change.
func TestCollectRefuses(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	large := objectOf(t, map[string]any{"text": strings.Repeat("x", 1<<20)})
	req := &historyv1.CollectRequest{}
	for range 9 {
		req.Items = append(req.Items, &historyv1.CollectItem{State: "completed", Output: large})
	}
	req.Items = append(req.Items, &historyv1.CollectItem{State: "failed"})
	if view := collect(t, c, req); view.GetOutputs().GetList() != nil || view.GetOutputs().GetStates()[9] != "failed" || !strings.Contains(view.GetError(), "outputs of the instances of each are larger than 8 MiB") {
		t.Errorf("too large: %.200v", view)
	}
	if view := collect(t, c, &historyv1.CollectRequest{From: 10, Items: []*historyv1.CollectItem{{State: "completed"}, {State: "completed", Record: storekey.Result("r-1", 0, "each[11]", 0)}}}); view.GetOutputs().GetList() != nil || !strings.Contains(view.GetError(), "output of each[11]") {
		t.Errorf("missing: %v", view)
	}
	if err := c.Store.Close(); err != nil {
		t.Fatal(err)
	}
	if view, err := c.Collect(t.Context(), &historyv1.CollectRequest{RunId: "r-1", Task: "each", Items: []*historyv1.CollectItem{{State: "completed", Record: storekey.Result("r-1", 0, "each[0]", 0)}}}); err == nil {
		t.Errorf("with a store that is closed: %v", view)
	}
}

// TestCollectListsArtifacts checks that the artifacts of instances are listed by position, those of parts one after another, also if
// their outputs are too large.
func TestCollectListsArtifacts(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	listed := func(view *historyv1.FanOutView) (all []string) {
		t.Helper()
		var lists results.ListCache
		list, err := lists.All(t.Context(), c.Store, view.GetOutputs())
		if err != nil {
			t.Fatal(err)
		}
		left, err := artifacts.UnpackInstances(list.GetArtifacts())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range left.GetList() {
			all = append(all, fmt.Sprintf("%d %s %s", one.GetPosition(), one.GetArtifact().GetName(), one.GetArtifact().GetManifest()))
		}
		return all
	}
	item := func(n int, names ...string) *historyv1.CollectItem {
		item := &historyv1.CollectItem{State: v1.TaskCompleted}
		for _, name := range names {
			item.Artifacts = append(item.Artifacts, &v1.Artifact{Name: name, Manifest: fmt.Sprintf("m%d", n)})
		}
		return item
	}
	small := collect(t, c, &historyv1.CollectRequest{Items: []*historyv1.CollectItem{item(0, "a", "b"), {State: v1.TaskFailed}, item(2, "a")}})
	if got := listed(small); small.GetOutputs().GetKey() != "" || !slices.Equal(got, []string{"0 a m0", "0 b m0", "2 a m2"}) {
		t.Errorf("inline: %v, %v", got, small)
	}
	first := collect(t, c, &historyv1.CollectRequest{Stored: true, Items: []*historyv1.CollectItem{item(0, "a"), {State: v1.TaskFailed}}})
	large := &historyv1.CollectRequest{Stored: true, From: 4, Items: []*historyv1.CollectItem{item(4, "a")}}
	for n := range 9 {
		large.Items = append(large.Items, item(5+n, "a"))
		large.Items[n+1].Output = objectOf(t, map[string]any{"text": strings.Repeat("x", 1<<20)})
	}
	parts := []*historyv1.CollectPartition{{Key: first.GetOutputs().GetKey(), Count: 2}, {Count: 2, State: v1.TaskSkipped}, {Key: collect(t, c, large).GetOutputs().GetKey(), Count: 10}}
	view := collect(t, c, &historyv1.CollectRequest{Partitions: parts})
	want := []string{"0 a m0"}
	for n := 4; n < 14; n++ {
		want = append(want, fmt.Sprintf("%d a m%d", n, n))
	}
	if got := listed(view); !slices.Equal(got, want) || !strings.Contains(view.GetError(), "larger than 8 MiB") {
		t.Errorf("of parts: %v, %s", got, view.GetError())
	}
}
