package dag

import v1 "switchyard/proto/switchyard/v1"

// starts carries out what readiness decides.
type starts struct {
	*records
	ready   *readiness
	ends    *ends
	fanOuts *fanOuts
}

// settle informs children about parents that have settled, and repeats this for the tasks that settle as a result. It uses a
// list rather than recursion because chains are long.
func (s *starts) settle() {
	for next := 0; next < len(s.ready.settled); next++ {
		i := s.ready.settled[next]
		effect := s.ready.progress[i].effect
		for _, c := range s.graph.nodes[i].children {
			if s.ready.inform(c, effect) {
				s.decide(c)
			}
		}
	}
	s.ready.settled = s.ready.settled[:0]
}

// decide begins or skips a task whose parents have settled, or requests the value of its condition. A task of `finally` waits for
// all others first.
func (s *starts) decide(i int) {
	if s.ends.finally.contains(i) && !s.ends.finallyBegan {
		return
	}
	switch v := s.ready.verdict(i); v.action {
	case toSkip:
		s.ends.skip(i, v.reason, v.text)
	case toEvaluate:
		s.ready.ask(i, condition)
	case toBegin:
		s.begin(i)
	}
}

// decideAll decides about all pending tasks without a decision so far.
func (s *starts) decideAll() {
	for i := range s.ready.progress {
		if s.ready.isUndecided(i) {
			s.decide(i)
			s.settle()
		}
	}
}

// begin starts a task that may start: with a request for a node, or with its instances.
func (s *starts) begin(i int) {
	switch {
	case !s.graph.nodes[i].fansOut:
		s.ready.enqueue(i, s.tasks[i])
	case s.instances(i) == nil:
		s.ready.ask(i, expansion)
	default: // it was requeued and has its instances
		s.ready.answered(i)
		rec := s.tasks[i]
		rec.State, rec.Reason, rec.Error = v1.TaskRunning, "", ""
		s.set(i, rec)
		s.fanOuts.start(i)
	}
}
