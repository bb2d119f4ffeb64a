package placement

import (
	"slices"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

const (
	// mostIdle is the number of idle request classes that the queue keeps.
	mostIdle = 256
	// mostIdleNodes bounds the number of nodes in idle classes. Each takes 8 bytes.
	mostIdleNodes = 1 << 20
)

// requestClasses holds the request classes: those with waiting requests and the most recent of the
// others.
type requestClasses struct {
	byKey       map[string]*requestClass
	active      []*requestClass // with waiting requests
	retirements uint64          // how often a class became idle
}

func newRequestClasses() *requestClasses {
	return &requestClasses{byKey: map[string]*requestClass{}}
}

// classOf returns the class of a request, which it creates if necessary.
func (c *requestClasses) classOf(runID string, req *historyv1.TaskRequest) *requestClass {
	ask, key := specKeys(runID, req)
	s := c.byKey[key]
	if s == nil {
		s = newRequestClass(key, newSpec(runID, req, ask))
		c.byKey[key] = s
	}
	return s
}

// restore returns the current class with the key of s. If s was dropped and no other has its key, restore
// adds s again.
func (c *requestClasses) restore(s *requestClass) *requestClass {
	if kept := c.byKey[s.key]; kept != nil {
		return kept
	}
	c.byKey[s.key] = s
	return s
}

// activate marks the class as having waiting requests. It returns false if the class was active
// before.
func (c *requestClasses) activate(s *requestClass) bool {
	if s.active >= 0 {
		return false
	}
	s.active = len(c.active)
	c.active = append(c.active, s)
	return true
}

// retire marks the class as idle.
func (c *requestClasses) retire(s *requestClass) {
	end := len(c.active) - 1
	c.active[s.active] = c.active[end]
	c.active[s.active].active = s.active
	c.active[end] = nil
	c.active = c.active[:end]
	s.active = -1
	s.takeFresh()
	s.notice.clear()
	if s.gang != nil { // no other request will ask for the same
		delete(c.byKey, s.key)
	}
	c.retirements++
	s.idleSince = c.retirements
	if len(c.byKey)-len(c.active) > 2*mostIdle {
		c.forgetIdle()
	}
}

// forgetIdle drops the request classes that have been idle for longest. It keeps half of the
// maximum, so that it seldom runs.
func (c *requestClasses) forgetIdle() {
	var idle []*requestClass
	for _, s := range c.byKey {
		if s.active < 0 {
			idle = append(idle, s)
		}
	}
	slices.SortFunc(idle, func(a, b *requestClass) int { return int(int64(b.idleSince) - int64(a.idleSince)) })
	nodes := 0
	for i, s := range idle {
		nodes += len(s.prospects.preferred.nodes)
		if i >= mostIdle || nodes > mostIdleNodes {
			delete(c.byKey, s.key)
		}
	}
}

// waitingCount returns the number of waiting requests.
func (c *requestClasses) waitingCount() int {
	sum := 0
	for _, s := range c.active {
		sum += s.waiting
	}
	return sum
}
