package gateway

import (
	"maps"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// memoryTime is how long it is remembered what a run has said, and memoryBytes how much of all of them.
	memoryTime  = 10 * time.Second
	memoryBytes = 32 << 20
)

// memory remembers what runs have said of late, so that the pages of a large one, and looks at it in a row, cost what
// has changed. It is safe for concurrent use. What it gives away is not changed by anybody.
type memory struct {
	mu    sync.Mutex
	runs  map[string]*said
	bytes int
}

// said is the whole status of a run as of an event of an execution.
type said struct {
	execution string // Temporal's own id
	events    int64  // in its history
	status    *v1.StatusResponse
	at        time.Time
	bytes     int

	// mu guards view: what was made of it last, which nobody changes.
	mu   sync.Mutex
	view *view
}

// viewed is the view of a run that has said s while these attempts run. It is not to be changed.
func (s *said) viewed(run string, running map[string]runningAttempt) *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == nil || !maps.EqualFunc(s.view.running, running, runningAttempt.equal) {
		s.view = newView(run)
		s.view.update([]*v1.StatusResponse{s.status}, running)
	}
	return s.view
}

// get returns what an execution of a run has said last; nil: it is not remembered.
func (m *memory) get(run, execution string) *said {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetOld()
	if s := m.runs[run]; s != nil && s.execution == execution {
		return s
	}
	return nil
}

// put returns what an execution of a run has said, and remembers it unless it is too large.
func (m *memory) put(run, execution string, events int64, status *v1.StatusResponse) *said {
	s := &said{execution: execution, events: events, status: status, at: time.Now(), bytes: proto.Size(status)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(run)
	m.forgetOld()
	if m.bytes+s.bytes > memoryBytes {
		return s
	}
	if m.runs == nil {
		m.runs = map[string]*said{}
	}
	m.runs[run] = s
	m.bytes += s.bytes
	return s
}

func (m *memory) forgetOld() {
	for run, s := range m.runs {
		if time.Since(s.at) > memoryTime {
			m.forget(run)
		}
	}
}

func (m *memory) forget(run string) {
	if s := m.runs[run]; s != nil {
		m.bytes -= s.bytes
		delete(m.runs, run)
	}
}
