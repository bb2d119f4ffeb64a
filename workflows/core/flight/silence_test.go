package flight

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// TestFinallyDoesNotWaitForSilentNodes checks that a cancelled run looks for silent nodes, and that finally begins without their
// attempts, which stay in flight.
func TestFinallyDoesNotWaitForSilentNodes(t *testing.T) {
	t.Parallel()
	def := tasks("a")
	def.Finally = map[string]*v1.TaskDefinition{"tell": {Type: v1.TypeShell}}
	p := attended(t, def)
	if effects := p.ExcuseSilent(); len(effects) > 0 {
		t.Fatalf("before the cancellation: %v", effects)
	}
	p.core.Apply(dag.Cancel{})
	p.Stop(0)
	effects := p.ExcuseSilent()
	timer, ok := effects[0].(After)
	if !ok || len(p.ExcuseSilent()) > 0 {
		t.Fatalf("after the cancellation: %v", effects)
	}
	effects = p.Due(timer.Timer, start)
	if find, ok := effects[0].(FindSilent); !ok || !slices.Equal(find.Nodes, []string{"n"}) {
		t.Fatalf("after a while: %v", effects)
	}
	p.FoundSilent(nil)
	if _, again := p.ExcuseSilent()[0].(After); !again {
		t.Error("the node lives, and is not looked for again")
	}
	p.Due(timer.Timer, start)
	p.FoundSilent(map[string]time.Time{"n": start})
	effects = p.ExcuseSilent()
	raised, ok := effects[len(effects)-1].(Raise)
	if !ok || raised.Event != (dag.BeginFinally{}) || !strings.Contains(p.SilenceOf(0), "node n has been silent since") {
		t.Fatalf("the node is silent: %v", effects)
	}
	if p.AttemptOf(0) == nil {
		t.Error("the attempt is no longer in flight, so it would give up its lock")
	}
}

// TestFinallyDoesNotWaitForSilentNodesOfPartitions checks that a task in partitions is silent once all nodes are on which it is left.
func TestFinallyDoesNotWaitForSilentNodesOfPartitions(t *testing.T) {
	t.Parallel()
	def := tasks("a")
	def.Finally = map[string]*v1.TaskDefinition{"tell": {Type: v1.TypeShell}}
	def.Tasks["a"].Parallel = structpb.NewNumberValue(200)
	p := begin(t, def)
	p.core.Apply(dag.Expanded{Count: 200, Partitioned: true})
	p.core.Apply(dag.Cancel{})
	if effects := p.ExcuseSilent(); len(effects) > 0 {
		t.Fatalf("before its partitions have reported: %v", effects)
	}
	p.records.At(0).LeftOn = []string{"m", "n"}
	p.ExcuseSilent()
	effects := p.Due(Timer{kind: silenceTimer}, start)
	if find, ok := effects[0].(FindSilent); !ok || !slices.Equal(find.Nodes, []string{"m", "n"}) {
		t.Fatalf("after a while: %v", effects)
	}
	p.FoundSilent(map[string]time.Time{"n": start})
	if _, again := p.ExcuseSilent()[0].(After); !again {
		t.Error("one node lives, and is not looked for again")
	}
	p.FoundSilent(map[string]time.Time{"m": start, "n": start})
	effects = p.ExcuseSilent()
	if raised, ok := effects[len(effects)-1].(Raise); !ok || raised.Event != (dag.BeginFinally{}) {
		t.Fatalf("both nodes are silent: %v", effects)
	}
}

// TestPartitionSaysWhereItIsLeft checks that a workflow names the nodes of its attempts once it was cancelled and has nothing else.
func TestPartitionSaysWhereItIsLeft(t *testing.T) {
	t.Parallel()
	p := attended(t, tasks("a"))
	if nodes := p.LeftOn(); nodes != nil {
		t.Errorf("before the cancellation, it is left on %v", nodes)
	}
	p.core.Apply(dag.Cancel{})
	if nodes := p.LeftOn(); !slices.Equal(nodes, []string{"n"}) {
		t.Errorf("it is left on %v", nodes)
	}
}

// TestTaskInFinallyWaitsForLockOnSilentNode checks that a task in finally does not get the lock of a cancelled task on a silent node
// before the end of that task is known.
func TestTaskInFinallyWaitsForLockOnSilentNode(t *testing.T) {
	t.Parallel()
	def := locked()
	def.Finally = map[string]*v1.TaskDefinition{"tell": {Type: v1.TypeShell, Mutex: "db"}}
	p := begin(t, def)
	p.admit()
	p.lockCalls()
	p.fly(p.Granted(&historyv1.Granted{Lock: "task:db", Claim: "migrate#1", Asker: "original"}, start))
	p.assign()
	p.round()
	p.Dispatched(p.NextDispatch())
	p.round(dag.Cancel{})
	p.FoundSilent(map[string]time.Time{"n": start})
	p.fly(p.ExcuseSilent())
	p.round()
	p.admit()
	if u := p.UnitOf(1); u == nil || u.Phase != Locking {
		t.Fatalf("tell is %v", u)
	}
	if got := p.lockCalls(); got != "+task:db tell#1" {
		t.Errorf("while the node is silent: locks %q", got)
	}
}
