package tunnel

import "sync"

// callers counts the open sessions of each caller, so that one of them does not take the memory of a gateway: what a client does not
// read is kept for it, up to 4 MiB a session. It is safe for concurrent use.
type callers struct {
	mu   sync.Mutex
	open map[string]int // by name
}

// enter counts a session of a caller until leave is called, or returns an error if most of them are open already.
func (c *callers) enter(name string, most int) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[name] >= most {
		return nil, exhausted("%d sessions are open as %q, as many as one caller may have at a gateway; end some of them first", most, name)
	}
	if c.open == nil {
		c.open = map[string]int{}
	}
	c.open[name]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open[name]--; c.open[name] == 0 {
			delete(c.open, name)
		}
	}, nil
}
