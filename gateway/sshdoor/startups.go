package sshdoor

import "sync"

const (
	// maxStartups bounds the connections that have not logged in yet, and maxStartupsOf those of them from one network.
	maxStartups, maxStartupsOf = 400, 256
	// maxConnections bounds all connections.
	maxConnections = 4000
)

// startups counts connections. It is safe for concurrent use.
type startups struct {
	mu                  sync.Mutex
	connected, starting int
	by                  map[string]int // starting, by network
}

// connect counts a connection that starts, or reports false if there are as many as may be.
func (s *startups) connect(network string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connected >= maxConnections || s.starting >= maxStartups || s.by[network] >= maxStartupsOf {
		return false
	}
	if s.by == nil {
		s.by = map[string]int{}
	}
	s.connected++
	s.starting++
	s.by[network]++
	return true
}

// started counts a connection as one that has logged in, or has failed to.
func (s *startups) started(network string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting--
	if s.by[network]--; s.by[network] == 0 {
		delete(s.by, network)
	}
}

// disconnect forgets a connection that has started.
func (s *startups) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected--
}
