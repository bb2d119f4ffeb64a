package orchestrator

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/placement"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Only the newest AwaitPlacement of the newest execution receives news. An older one would consume news that is never
// read.
func TestNewsReachTheNewestWaiter(t *testing.T) {
	t.Parallel()
	p := NewPlacement(nil, placement.New(placement.Options{Epoch: "e"}), PlacementOptions{Logger: slog.New(slog.DiscardHandler)})
	attend := func(execution string) *waiter {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.queue.Request(placement.Run{ID: "r"}, []*historyv1.TaskRequest{{Task: "t", Claim: 1, Type: "shell"}})
		return p.replaceWaiter("r", execution)
	}
	told := func(w *waiter) bool {
		_, _, current := p.newsFor(w, "r")
		return current
	}
	woken := func(w *waiter) bool {
		select {
		case <-w.news:
			return true
		default:
			return false
		}
	}
	placed := attend("first")
	first := p.await("r", "first")
	if told(placed) || !woken(placed) || !told(first) || woken(first) {
		t.Error("the first AwaitPlacement does not take over from Place")
	}
	again := p.await("r", "first")
	if told(first) || !woken(first) || !told(again) {
		t.Error("a repeated AwaitPlacement does not take over")
	}
	attend("second")
	if told(again) || !woken(again) {
		t.Error("an AwaitPlacement continues when its execution is over")
	}
	if told(p.await("r", "first")) {
		t.Error("an execution that is over is told news")
	}
	second := p.await("r", "second")
	if !told(second) {
		t.Error("the new execution is not told")
	}

	// News wakes the waiter. A forgotten run has no news.
	p.SetNodes([]placement.Node{{Snapshot: &v1.NodeSnapshot{Name: "a", Sequence: 1, Executors: []string{"shell"}, MaxParallel: 4,
		Cpu: &v1.CpuSnapshot{Cores: 4}, Memory: &v1.MemorySnapshot{TotalMb: 100, AvailableMb: 100}}}})
	if !woken(second) {
		t.Error("the waiter sleeps on")
	}
	if res, _, current := p.newsFor(second, "r"); !current || len(res.GetAssigned()) != 1 || res.GetEpoch() != "e" {
		t.Errorf("told %v", res)
	}
	p.Forget("r")
	if res, _, current := p.newsFor(second, "r"); current || !res.GetResync() || len(p.waiters) != 0 {
		t.Errorf("after the end: %v, current: %v", res, current)
	}
}

// TestExplainSeveral checks that Explain covers as many of the first tasks as fit into one answer.
func TestExplainSeveral(t *testing.T) {
	t.Parallel()
	p := NewPlacement(nil, placement.New(placement.Options{Epoch: "e"}), PlacementOptions{Logger: slog.New(slog.DiscardHandler)})
	var nodes []placement.Node
	for i := range 500 {
		nodes = append(nodes, placement.Node{Snapshot: &v1.NodeSnapshot{Name: fmt.Sprintf("node-%03d", i), Sequence: 1, Executors: []string{"shell"}, MaxParallel: 4}})
	}
	p.SetNodes(nodes)
	ask := &historyv1.ExplainRequest{RunId: "r-1"}
	for i := range 40 {
		ask.More = append(ask.More, &historyv1.TaskRequest{Task: fmt.Sprintf("t%d", i), Type: "shell"})
	}
	asked := 0
	for calls := 0; asked < 40; calls++ {
		res, err := p.Explain(t.Context(), &historyv1.ExplainRequest{RunId: "r-1", More: ask.GetMore()[asked:]})
		if err != nil || len(res.GetMore()) == 0 || calls > 40 {
			t.Fatalf("call %d after %d tasks: %v", calls, asked, err)
		}
		if size := proto.Size(res); size > 2*maxExplained {
			t.Errorf("an answer has %d bytes", size)
		}
		for _, one := range res.GetMore() {
			if len(one.GetNodes()) != 500 {
				t.Errorf("%d nodes", len(one.GetNodes()))
			}
		}
		if asked == 0 && len(res.GetMore()) == 40 {
			t.Error("the answer is not cut")
		}
		asked += len(res.GetMore())
	}
}

// If a workflow task fails after Place, the answer is lost. The next attempt gets it again, because it names what the run
// has acknowledged.
func TestLostAnswersAreSentAgain(t *testing.T) {
	t.Parallel()
	node := placement.Node{Snapshot: &v1.NodeSnapshot{Name: "a", Sequence: 1, Executors: []string{"shell"}, MaxParallel: 4,
		Cpu: &v1.CpuSnapshot{Cores: 4}, Memory: &v1.MemorySnapshot{TotalMb: 100, AvailableMb: 100}}}
	p := NewPlacement(nil, placement.New(placement.Options{Epoch: "e"}), PlacementOptions{Logger: slog.New(slog.DiscardHandler)})
	ask := func(req *historyv1.PlaceRequest, want ...string) *historyv1.PlaceResponse {
		t.Helper()
		req.RunId = "r"
		res, err := p.answer("x", req)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range res.GetAssigned() {
			got = append(got, a.GetTask())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("told of %v, want %v", got, want)
		}
		return res
	}
	first := ask(&historyv1.PlaceRequest{Requests: []*historyv1.TaskRequest{{Task: "t", Claim: 1, Type: "shell"}, {Task: "u", Claim: 1, Type: "shell"}}})
	p.SetNodes([]placement.Node{node})
	done := []*historyv1.ClaimRef{{Task: "s", Claim: 1}}
	ask(&historyv1.PlaceRequest{Released: done, Epoch: "e", Acknowledged: first.GetNumber()}, "t", "u") // lost
	again := ask(&historyv1.PlaceRequest{Released: done, Epoch: "e", Acknowledged: first.GetNumber()}, "t", "u")
	ask(&historyv1.PlaceRequest{Released: done, Epoch: "e", Acknowledged: again.GetNumber()})

	// A run that names another queue has acknowledged nothing of this one. Claims that it has released are not reported.
	more := ask(&historyv1.PlaceRequest{Requests: []*historyv1.TaskRequest{{Task: "v", Claim: 1, Type: "shell"}}, Epoch: "e", Acknowledged: again.GetNumber()}, "v")
	ask(&historyv1.PlaceRequest{Epoch: "other", Acknowledged: more.GetNumber()}, "v")
	ask(&historyv1.PlaceRequest{Released: []*historyv1.ClaimRef{{Task: "v", Claim: 1}}, Epoch: "e", Acknowledged: again.GetNumber()})
	p.Forget("r")
	if len(p.reported) > 0 {
		t.Error("a run that is forgotten is remembered")
	}
}

// A run that was reset requests the claims from the reset point on again, which the terminated execution has released.
// Later requests of the terminated execution are ignored.
func TestResetRunIsPlacedAnew(t *testing.T) {
	t.Parallel()
	p := NewPlacement(nil, placement.New(placement.Options{Epoch: "e"}), PlacementOptions{Logger: slog.New(slog.DiscardHandler)})
	p.SetNodes([]placement.Node{{Snapshot: &v1.NodeSnapshot{Name: "a", Sequence: 1, Executors: []string{"shell"}, MaxParallel: 1,
		Cpu: &v1.CpuSnapshot{Cores: 4}, Memory: &v1.MemorySnapshot{TotalMb: 100, AvailableMb: 100}}}})
	place := func(chain string, req *historyv1.PlaceRequest) int {
		t.Helper()
		req.RunId, req.Chain, req.Epoch = "r", chain, "e"
		res, err := p.answer(chain, req)
		if err != nil {
			t.Fatal(err)
		}
		return len(res.GetAssigned())
	}
	ask := func(claim int32) *historyv1.PlaceRequest {
		return &historyv1.PlaceRequest{Requests: []*historyv1.TaskRequest{{Task: "t", Claim: claim, Type: "shell"}}}
	}
	place("first", ask(1))
	place("first", &historyv1.PlaceRequest{Released: []*historyv1.ClaimRef{{Task: "t", Claim: 1, Outcome: "done"}}})
	if place("first", ask(1)) != 0 || place("first", ask(2)) != 1 {
		t.Fatal("an execution is given a place for a claim that it has released, or none for a new one")
	}
	if place("reset", ask(1)) != 1 {
		t.Error("the reset run is given no place, or the terminated execution holds it still")
	}
	if place("first", ask(3)) != 0 || place("first", &historyv1.PlaceRequest{Released: []*historyv1.ClaimRef{{Task: "t", Claim: 1}}}) != 0 || place("reset", ask(1)) != 1 {
		t.Error("the terminated execution is still answered")
	}
}
