package orchestrator

import (
	"testing"

	"switchyard/proto/prototest"
	v1 "switchyard/proto/switchyard/v1"
)

// TestReopenedInstanceForgetsNoField checks that an instance that a retry keeps has every field that a task keeps.
func TestReopenedInstanceForgetsNoField(t *testing.T) {
	t.Parallel()
	instance := &v1.Instance{}
	prototest.Fill(instance)
	// The other fields are on the instance's task, derived again, or do not apply. The gateway adds the notice to running tasks.
	missing := prototest.Missing(reopenedInstance(instance), "type", "depends_on", "count", "counts", "instances", "held", "created_at", "dead_lettered_at", "notice", "name", "finally", "late_since")
	if len(missing) > 0 {
		t.Errorf("it has no %v", missing)
	}
}
