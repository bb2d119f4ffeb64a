package runview

import (
	"maps"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

const (
	// cacheTime is how long the status of a run is cached, and cacheBytes bounds the size of the cache.
	cacheTime  = 10 * time.Second
	cacheBytes = 32 << 20
)

// statusCache caches the last statuses of runs, so that the pages of a large run, and repeated reads of it, cost only the
// changes. It is safe for concurrent use. Its statuses must not be changed.
type statusCache struct {
	mu    sync.Mutex
	runs  map[string]*CachedStatus
	bytes int
}

// CachedStatus is the whole status of a run as of an event of an execution.
type CachedStatus struct {
	execution string // Temporal's run id
	events    int64  // length of the history
	Status    *historyv1.StatusResponse
	at        time.Time
	bytes     int

	// mu guards view, the last view made of the status. Views are immutable.
	mu   sync.Mutex
	view *View
}

// viewWith returns a view of the status with the given running attempts. The view is shared and must not be changed.
func (s *CachedStatus) viewWith(run string, running map[string]RunningAttempt) *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == nil || !maps.EqualFunc(s.view.Running, running, RunningAttempt.equal) {
		s.view = NewView(run)
		s.view.Update([]*historyv1.StatusResponse{s.Status}, running)
	}
	return s.view
}

// get returns the cached status of an execution of a run, or nil.
func (m *statusCache) get(run, execution string) *CachedStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetOld()
	if s := m.runs[run]; s != nil && s.execution == execution {
		return s
	}
	return nil
}

// add returns the status of an execution of a run as a cache entry, and caches it unless the cache is full.
func (m *statusCache) add(run, execution string, events int64, status *historyv1.StatusResponse) *CachedStatus {
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
