package stack

import (
	"testing"
	"time"
)

func TestOnlyNodesWithADrainTimeoutDrain(t *testing.T) {
	if (Config{Nodes: []NodeConfig{{}}}).Drains() {
		t.Error("a node without a drain time-out drains")
	}
	if !(Config{Nodes: []NodeConfig{{}, {DrainTimeout: time.Second}}}).Drains() {
		t.Error("a node with a drain time-out does not")
	}
}
