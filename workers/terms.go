package workers

import (
	"slices"
	"sync"
	"time"

	"switchyard/activities/taskrunner"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

// terms applies the terms on which a node takes tasks.
type terms struct {
	flags         *v1.NodeTerms
	gamingTimeout time.Duration

	mu      sync.Mutex
	set     *v1.NodeTerms // at run time, in place of flags
	refusal string        // that applies to the attempts
	drains  bool          // the refusal has a deadline
}

// setTerms replaces all terms that are set at run time.
func (n *Node) setTerms(set *v1.NodeTerms) {
	n.terms.mu.Lock()
	n.terms.set = set
	n.terms.mu.Unlock()
	n.presence.Hurry()
}

// apply adds the terms to a snapshot, with the labels for which the node is reserved. If by its terms the node takes no tasks at that time,
// apply adds the reason, and the node hands back its waiting attempts until the refusal ends.
func (t *terms) apply(s *v1.NodeSnapshot, attempts *taskrunner.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Terms = policy.TermsInForce(t.flags, t.set)
	if reserved := policy.ReservedLabels(s.GetTerms().GetKeptFor()); len(reserved) > 0 {
		s.Labels = append(s.Labels, reserved...)
		slices.Sort(s.Labels)
		s.Labels = slices.Compact(s.Labels)
	}
	now := s.GetTakenAt().AsTime()
	s.Refusal = policy.Refusal(s.GetTerms(), s.GetGaming(), now)
	drains := s.GetGaming() && s.GetTerms().GetWhileGaming() == policy.GamingDrain
	if s.GetRefusal() == t.refusal && drains == t.drains {
		return
	}
	t.refusal, t.drains = s.GetRefusal(), drains
	switch {
	case t.refusal == "":
		attempts.EndRefusal()
	case drains:
		attempts.BeginRefusal(now.Add(t.gamingTimeout), t.refusal)
	default:
		attempts.BeginRefusal(time.Time{}, t.refusal)
	}
}
