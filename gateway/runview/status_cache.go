package runview

import (
	"maps"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// cacheTime is how long it is remembered what a run has said, and memoryBytes how much of all of them.
	cacheTime  = 10 * time.Second
	cacheBytes = 32 << 20
)

// statusCache remembers the last statuses of runs, so that the pages of a large run, and repeated looks at it, cost only
// what has changed. It is safe for concurrent use. What it returns must not be changed.
type statusCache struct {
	mu    sync.Mutex
	runs  map[string]*CachedStatus
	bytes int
}

// CachedStatus is the whole status of a run as of an event of an execution.
type CachedStatus struct {
	execution string // Temporal's own id
	events    int64  // in its history
	Status    *v1.StatusResponse
	at        time.Time
	bytes     int

	// mu guards view: the last view made of the status, which is never changed.
	mu   sync.Mutex
	view *View
}

// viewWith returns the view of a run with the status while these attempts run. The view is shared and must not be changed.
func (s *CachedStatus) viewWith(run string, running map[string]RunningAttempt) *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == nil || !maps.EqualFunc(s.view.Running, running, RunningAttempt.equal) {
		s.view = NewView(run)
		s.view.Update([]*v1.StatusResponse{s.Status}, running)
	}
	return s.view
}

// get returns the last status of an execution of a run, or nil if it is not remembered.
func (m *statusCache) get(run, execution string) *CachedStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetOld()
	if s := m.runs[run]; s != nil && s.execution == execution {
		return s
	}
	return nil
}

// add returns the status of an execution of a run, and remembers it unless it is too large.
func (m *statusCache) add(run, execution string, events int64, status *v1.StatusResponse) *CachedStatus {
	s := &CachedStatus{execution: execution, events: events, Status: status, at: time.Now(), bytes: proto.Size(status)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(run)
	m.forgetOld()
	if m.bytes+s.bytes > cacheBytes {
		return s
	}
	if m.runs == nil {
		m.runs = map[string]*CachedStatus{}
	}
	m.runs[run] = s
	m.bytes += s.bytes
	return s
}

func (m *statusCache) forgetOld() {
	for run, s := range m.runs {
		if time.Since(s.at) > cacheTime {
			m.forget(run)
		}
	}
}

func (m *statusCache) forget(run string) {
	if s := m.runs[run]; s != nil {
		m.bytes -= s.bytes
		delete(m.runs, run)
	}
}
