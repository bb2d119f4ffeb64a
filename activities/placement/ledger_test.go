package placement

import (
	"testing"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// ledgerFleet returns a fleet of nodes that no request waits for.
func ledgerFleet(c *clock, nodes ...*v1.NodeSnapshot) *fleet {
	f := newFleet(Options{Settle: 10 * time.Second}.WithDefaults(), newAccounts(time.Hour, false))
	f.replace(live(nodes...), c.now())
	return f
}

func claimOn(n *node, task string, c *clock, g grant) *claim {
	return &claim{key: claimKey{run: "r", task: task, claim: 1}, node: n, assignedAt: c.now(), grant: g}
}

func TestClaimHoldsOnAllNodesOfItsMachineUntilItIsReleased(t *testing.T) {
	c := newClock()
	f := ledgerFleet(c, aNode("a", onMachine("m"), gpus(2)), aNode("b", onMachine("m"), gpus(2)))
	a, b := f.node("a"), f.node("b")
	held := claimOn(a, "t", c, grant{milliCores: 1500, memoryMB: 1000, gpus: []int32{1}, numa: noNUMA})
	held.occupy()
	for _, n := range []*node{a, b} {
		if n.now.usedMilli != 1500 || n.now.freeMB != 7192 || n.machine.gpuUse(1) != (v1.GPUUse{Whole: 1}) || n.machine.gpuUse(0) != (v1.GPUUse{}) {
			t.Errorf("%s has %d thousandths used and %d MiB free", n.name, n.now.usedMilli, n.now.freeMB)
		}
	}
	if a.tasks != 1 || b.tasks != 0 || f.claimCount() != 1 {
		t.Errorf("a counts %d tasks, b %d, the fleet %d claims", a.tasks, b.tasks, f.claimCount())
	}
	f.log.endPass()
	c.add(time.Second)
	f.release(held, c.now())
	if a.now.usedMilli != 0 || b.now.freeMB != 8192 || b.machine.gpuUse(1) != (v1.GPUUse{}) || a.tasks != 0 || f.claimCount() != 0 {
		t.Errorf("after the release a has %d thousandths used, b %d MiB free", a.now.usedMilli, b.now.freeMB)
	}
	if !f.log.moreRoom || a.mean != time.Second {
		t.Errorf("room was noted: %v, mean duration %v", f.log.moreRoom, a.mean)
	}
}

func TestLiftRestoresWhatAClaimHolds(t *testing.T) {
	c := newClock()
	f := ledgerFleet(c, aNode("a"))
	n := f.node("a")
	held := claimOn(n, "t", c, grant{milliCores: 1000, memoryMB: 500, numa: noNUMA})
	held.occupy()
	before := n.now
	restore := f.ledger.lift(held)
	if n.now.usedMilli != 0 || n.now.freeMB != 8192 || n.tasks != 0 {
		t.Errorf("lifted: %+v", n.now)
	}
	restore()
	if n.now != before || n.tasks != 1 || n.claimed[held.key] != held {
		t.Errorf("restored: %+v, want %+v", n.now, before)
	}
}

func TestForeignAttemptHoldsUntilItIsReleased(t *testing.T) {
	c := newClock()
	f := ledgerFleet(c, aNode("a", holding(-1, 3, 0)))
	held := f.ledger.foreignClaimOf("other", "a")
	if held == nil {
		t.Fatal("the attempt holds nothing")
	}
	n, key := held.node, held.key
	if n.now.usedMilli != 3000 || n.tasks != 1 {
		t.Fatalf("found %v", n)
	}
	if f.ledger.releaseForeign(key, c.now()) != n || n.now.usedMilli != 0 || n.tasks != 0 {
		t.Errorf("after the release %d thousandths are used", n.now.usedMilli)
	}
	if f.ledger.releaseForeign(key, c.now()) != nil {
		t.Error("released twice")
	}
}

func TestNodeThatLeavesStaysUntilItsClaimsAreReleased(t *testing.T) {
	c := newClock()
	f := ledgerFleet(c, aNode("a", onMachine("m")), aNode("b", onMachine("m")))
	held := claimOn(f.node("a"), "t", c, grant{milliCores: 4000, numa: noNUMA})
	held.occupy()
	f.replace(live(aNode("b", onMachine("m"))), c.now())
	if len(f.listed) != 1 || f.node("a") == nil || f.node("b").now.usedMilli != 4000 || len(f.named("a", "b")) != 1 {
		t.Errorf("a holds nothing any more: %+v", f.node("b").now)
	}
	f.release(held, c.now())
	if f.node("a") != nil || f.node("b").now.usedMilli != 0 {
		t.Errorf("a is still known: %v", f.node("a"))
	}
}
