package placement

import (
	"testing"
	"time"
)

func TestNodeWantedByMoreUrgentRequestsIsGuarded(t *testing.T) {
	c := newClock()
	f, eval, classes := ledgerFleet(c, aNode("a"), aNode("b", labels("x"))), newEvaluator(0), newRequestClasses()
	pg := &prefetchGuard{eval: eval, classes: classes, log: f.log}
	d := newDemand(classes, newAccounts(time.Hour, false), pg)
	addAll(d, c, aTask("low"), aTask("high", withPriority(1), withMemory(1), pinned("b")))
	low := d.requestOf("r", "low").class
	pg.startLevel(1)
	if a, b := pg.mayWaitOn(f.node("a")), pg.mayWaitOn(f.node("b")); !a || !b {
		t.Errorf("the most urgent may wait on a: %v, on b: %v", a, b)
	}
	pg.reach(0)
	if a, b := pg.mayWaitOn(f.node("a")), pg.mayWaitOn(f.node("b")); !a || b {
		t.Errorf("low may wait on a: %v, on b, which high wants: %v", a, b)
	}
	pg.guardNode(low, f.node("b"))
	pg.guardNode(low, f.node("b"))
	if len(pg.nodes) != 1 || pg.reordered {
		t.Fatalf("%d nodes are guarded, reordered: %v", len(pg.nodes), pg.reordered)
	}
	if d.unqueue(d.requestOf("r", "high")); !pg.reordered {
		t.Error("the withdrawal of high changes nothing")
	}
	f.log.endPass()
	if pg.free(); len(pg.nodes) != 0 || pg.reordered || !f.log.moreRoom {
		t.Errorf("%d nodes are still guarded", len(pg.nodes))
	}
}
