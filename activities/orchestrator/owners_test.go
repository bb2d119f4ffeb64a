package orchestrator

import (
	"log/slog"
	"testing"
	"time"

	"switchyard/activities/owners"
	"switchyard/activities/placement"
	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestLeaderAppliesTermsAndWritesUse checks that a queue gets the quotas in the store, that the use of its owners is stored, and
// that the next queue starts with it.
func TestLeaderAppliesTermsAndWritesUse(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	all := owners.New(s, time.Now)
	if _, err := all.Set(t.Context(), "ann", nil, &v1.Quota{Tasks: 1}, "root"); err != nil {
		t.Fatal(err)
	}
	newPlacement := func() *Placement {
		p := NewPlacement(nil, placement.New(placement.Options{Epoch: "e", FairHalfLife: time.Minute}), PlacementOptions{Logger: slog.New(slog.DiscardHandler)})
		p.SetNodes([]placement.Node{{Snapshot: &v1.NodeSnapshot{Name: "n", Executors: []string{"shell"}, Cpu: &v1.CpuSnapshot{Cores: 8}, MaxParallel: 8}}})
		return p
	}
	p := newPlacement()
	applied := p.applyTerms(t.Context(), all, nil)
	p.queue.Request(placement.Run{ID: "r", Owner: "ann"}, []*historyv1.TaskRequest{{Task: "a", Claim: 1, Type: "shell"}, {Task: "b", Claim: 1, Type: "shell"}})
	p.pass()
	if waiting, placed := p.Counts(); len(applied) != 1 || waiting != 1 || placed != 1 {
		t.Fatalf("%v; %d wait, %d are placed", applied, waiting, placed)
	}
	time.Sleep(10 * time.Millisecond) // the average of what is held needs time
	p.writeUse(t.Context(), all, nil)
	use, err := all.Use(t.Context())
	if ann := use.GetOwners()["ann"]; err != nil || ann.GetRunning() != 1 || ann.GetWaiting() != 1 || ann.GetLately() == 0 {
		t.Fatalf("stored %v, %v", use, err)
	}
	if _, err := all.Set(t.Context(), "ann", nil, &v1.Quota{}, "root"); err != nil {
		t.Fatal(err)
	}
	p.applyTerms(t.Context(), all, applied)
	if waiting, placed := p.Counts(); waiting != 0 || placed != 2 {
		t.Errorf("without a quota %d wait, %d are placed", waiting, placed)
	}
	next := newPlacement()
	next.restoreUse(t.Context(), all)
	if got := next.queue.Usage()["ann"].GetLately(); got == 0 {
		t.Error("the next queue has forgotten what ann used")
	}
}
