package sshdoor

import "sync"

const (
	// maxStartups bounds the connections that have not logged in yet, and maxStartupsOf those from one network.
	maxStartups, maxStartupsOf = 400, 256
	// maxConnections bounds all connections.
	maxConnections = 4000
)

// startups counts connections by login phase. It is safe for concurrent use.
type startups struct {
	mu                  sync.Mutex
	connected, starting int
	by                  map[string]int // connections not logged in yet, by network
}

// connect counts a new connection, or returns false if a limit is reached.
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

// started marks a connection as logged in or failed.
func (s *startups) started(network string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting--
	if s.by[network]--; s.by[network] == 0 {
		delete(s.by, network)
	}
}

// disconnect removes a connection whose login phase is over from the count.
func (s *startups) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected--
}
