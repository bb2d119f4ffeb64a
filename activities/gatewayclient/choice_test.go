package gatewayclient

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

func newTestChoice(t *testing.T, identifies bool) *choice {
	t.Helper()
	list, err := Parse("http://a,http://b,http://c")
	if err != nil {
		t.Fatal(err)
	}
	return newChoice(list, identifies)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestChoiceMovesOnAndStays(t *testing.T) {
	t.Parallel()
	c := newTestChoice(t, false)
	c.hasAnswered(0)
	_, changed := c.inUse()
	var failures sync.WaitGroup
	for range 20 { // requests that fail together move once
		failures.Go(func() { c.hasFailed(0) })
	}
	failures.Wait()
	if order := c.order(); !slices.Equal(order, []int{1, 2, 0}) {
		t.Errorf("after the failure of a: %v", order)
	}
	if i, _ := c.inUse(); i != 0 || isClosed(changed) {
		t.Errorf("before another gateway answers, %d is in use", i)
	}
	c.hasAnswered(0) // a late answer
	if i, _ := c.inUse(); i != 0 || !slices.Equal(c.order(), []int{1, 2, 0}) {
		t.Errorf("a late answer changes the choice to %d, %v", i, c.order())
	}
	c.hasAnswered(1)
	i, next := c.inUse()
	if i != 1 || !isClosed(changed) || isClosed(next) {
		t.Errorf("%d is in use after b has answered", i)
	}
	c.hasFailed(0) // another request that a has kept waiting
	c.hasAnswered(1)
	if i, _ := c.inUse(); i != 1 || isClosed(next) {
		t.Errorf("%d is in use, although b works", i)
	}
	c.hasFailed(1)
	c.hasFailed(2)
	c.hasAnswered(0)
	if i, _ := c.inUse(); i != 0 || !isClosed(next) || !slices.Equal(c.order(), []int{0, 1, 2}) {
		t.Errorf("%d is in use after b and c have failed", i)
	}
}

func TestChoiceUsesOneStore(t *testing.T) {
	t.Parallel()
	c := newTestChoice(t, true)
	if !c.needsIdentity(0) || c.identify(0, "A") != nil || c.needsIdentity(0) || !c.needsIdentity(1) {
		t.Error("the first identity is not wanted of the others")
	}
	err := c.identify(1, "B")
	if err == nil || !strings.Contains(err.Error(), "it has the store B, but http://a has the store A") || !c.needsIdentity(1) {
		t.Errorf("another store: %v", err)
	}
	if c.identify(2, "A") != nil || c.needsIdentity(2) {
		t.Error("a gateway of the same store is refused")
	}
	c.hasFailed(2)
	if !c.needsIdentity(2) || c.needsIdentity(0) {
		t.Error("a gateway that has failed need not be identified again")
	}
	c.expect("B", "the fleet")
	if err := c.identify(0, "A"); err == nil || !strings.Contains(err.Error(), "it has the store A, but the fleet has the store B") {
		t.Errorf("the store of another fleet: %v", err)
	}
	if c.identify(1, "B") != nil || c.needsIdentity(1) || !c.needsIdentity(2) {
		t.Error("the gateways are not identified again")
	}
}

// TestSingleGatewayNeedsNoIdentityAtFirst keeps the first call to a single gateway free of another call.
func TestSingleGatewayNeedsNoIdentityAtFirst(t *testing.T) {
	t.Parallel()
	list, err := Parse("http://a")
	if err != nil {
		t.Fatal(err)
	}
	c := newChoice(list, true)
	if c.needsIdentity(0) {
		t.Error("before an identity is known")
	}
	if c.identify(0, "A") != nil || c.needsIdentity(0) {
		t.Error("after it has been identified")
	}
	if c.hasFailed(0); !c.needsIdentity(0) {
		t.Error("after it has failed, another gateway may be in its place")
	}
}
