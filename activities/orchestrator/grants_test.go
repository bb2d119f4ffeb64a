package orchestrator

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"switchyard/activities/grants"
	"switchyard/activities/placement"
	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestNoTaskIsPlacedWithoutItsGrant makes the store unreachable while a run requests nodes.
func TestNoTaskIsPlacedWithoutItsGrant(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	given := grants.New(s)
	p := NewPlacement(nil, placement.New(placement.Options{Epoch: "e"}), PlacementOptions{Grants: given, Logger: slog.New(slog.DiscardHandler)})
	p.SetNodes([]placement.Node{{Snapshot: &v1.NodeSnapshot{Name: "a", Sequence: 1, Executors: []string{"shell"}, MaxParallel: 9,
		Cpu: &v1.CpuSnapshot{Cores: 8}, Memory: &v1.MemorySnapshot{TotalMb: 8000, AvailableMb: 8000}, Disk: &v1.DiskSnapshot{}}}})
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(p.Place)
	place := func(req *historyv1.PlaceRequest) (*historyv1.PlaceResponse, error) {
		value, err := env.ExecuteActivity(p.Place, req)
		if err != nil {
			return nil, err
		}
		var res historyv1.PlaceResponse
		return &res, value.Get(&res)
	}
	// The requests name a task, an instance, and an instance in a part of a large fan-out.
	whole := &historyv1.PlaceRequest{RunId: "ci-0k", Chain: "c1", Requests: []*historyv1.TaskRequest{{Task: "build", Claim: 1, Type: "shell"}, {Task: "each[3]", Claim: 1, Type: "shell"}}}
	part := &historyv1.PlaceRequest{RunId: "ci-0k/0/wide[1000]/c1", Chain: "c1", Requests: []*historyv1.TaskRequest{{Task: "wide[1003]", Claim: 1, Type: "shell"}}}

	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if res, err := place(whole); err == nil {
		t.Errorf("placed without a store: %v", res)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	for _, req := range []*historyv1.PlaceRequest{whole, part} {
		res, err := place(req)
		if err != nil || len(res.GetAssigned()) != len(req.GetRequests()) {
			t.Fatalf("%v, %v", res, err)
		}
	}
	reader := grants.New(s)
	for _, task := range []string{"build", "each", "wide"} {
		if ok, err := reader.Has(t.Context(), grants.Grant{Node: "a", Run: "ci-0k", Chain: "c1", Task: task}); !ok || err != nil {
			t.Errorf("%s is not granted: %v", task, err)
		}
	}
}
