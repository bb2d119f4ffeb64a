package placement

import "testing"

func TestNodeWantedByMoreUrgentRequestsIsReserved(t *testing.T) {
	c := newClock()
	f, eval, classes := ledgerFleet(c, aNode("a"), aNode("b", labels("x"))), newEvaluator(0), newRequestClasses()
	rs := &reservations{eval: eval, classes: classes, log: f.log}
	d := newDemand(classes, rs)
	addAll(d, c, aTask("low"), aTask("high", withPriority(1), withMemory(1), pinned("b")))
	low := d.requestOf("r", "low").class
	rs.startLevel(1)
	if a, b := rs.mayWaitOn(f.node("a")), rs.mayWaitOn(f.node("b")); !a || !b {
		t.Errorf("the most urgent may wait on a: %v, on b: %v", a, b)
	}
	rs.reach(0)
	if a, b := rs.mayWaitOn(f.node("a")), rs.mayWaitOn(f.node("b")); !a || b {
		t.Errorf("low may wait on a: %v, on b, which high wants: %v", a, b)
	}
	rs.reserveNode(low, f.node("b"))
	rs.reserveNode(low, f.node("b"))
	if len(rs.nodes) != 1 || rs.reordered {
		t.Fatalf("%d nodes are reserved, reordered: %v", len(rs.nodes), rs.reordered)
	}
	if d.unqueue(d.requestOf("r", "high")); !rs.reordered {
		t.Error("the withdrawal of high changes nothing")
	}
	f.log.endPass()
	if rs.free(); len(rs.nodes) != 0 || rs.reordered || !f.log.moreRoom {
		t.Errorf("%d nodes are still reserved", len(rs.nodes))
	}
}
