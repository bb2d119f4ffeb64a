package tunnel

import "sync"

// callers counts the open sessions of each caller, so that no single caller uses up the memory of a gateway: the gateway
// buffers up to 4 MiB of unread data for each session. It is safe for concurrent use.
type callers struct {
	mu   sync.Mutex
	open map[string]int // by name
}

// enter counts a session of a caller until leave is called. It returns an error if the caller already has `most` sessions
// open.
func (c *callers) enter(name string, most int) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[name] >= most {
		return nil, exhausted("%d sessions are open as %q, the limit per caller and gateway; close some first", most, name)
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
