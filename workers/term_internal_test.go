package workers

import "testing"

// TestFrozenLeaderDoesNotLead checks that a process whose lease has expired is not the leader, although it has not ended its
// term yet.
func TestFrozenLeaderDoesNotLead(t *testing.T) {
	t.Parallel()
	lease := true
	c := &Control{term: &term{leads: func() bool { return lease }}}
	if !c.IsLeader() {
		t.Error("it does not lead under its lease")
	}
	if lease = false; c.IsLeader() {
		t.Error("it leads without a lease")
	}
}
