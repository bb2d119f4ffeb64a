package orchestrator

import (
	"testing"

	"switchyard/proto/prototest"
	v1 "switchyard/proto/switchyard/v1"
)

// An instance that a retry keeps has every field of it that its task has.
func TestReopenedInstanceForgetsNoField(t *testing.T) {
	t.Parallel()
	instance := &v1.Instance{}
	prototest.Fill(instance)
	// Its task has the rest, or it has none; the gateway adds a notice to what runs.
	missing := prototest.Missing(instanceTask(instance), "type", "depends_on", "count", "counts", "instances", "held", "created_at", "dead_lettered_at", "notice", "name")
	if len(missing) > 0 {
		t.Errorf("it has no %v", missing)
	}
}
