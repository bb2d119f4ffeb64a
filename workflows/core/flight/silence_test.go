package flight

import (
	"slices"
	"strings"
	"testing"
	"time"

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
