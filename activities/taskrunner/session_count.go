package taskrunner

// sessionCount counts the sessions that are open in an attempt: all of them for the idle time-out, and those that copy or
// serve files for their bound. It is safe for concurrent use.
type sessionCount struct {
	idle      idleTimeout
	transfers transfers
}

// begin counts a session of a kind as open until end is called. It returns false if the attempt may have no further
// session of that kind.
func (c *sessionCount) begin(kind string) (end func(), ok bool) {
	leave := c.idle.enter()
	if !isTransfer(kind) {
		return leave, true
	}
	endTransfer, ok := c.transfers.begin()
	if !ok {
		leave()
		return nil, false
	}
	return func() { endTransfer(); leave() }, true
}
