package taskrunner

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
)

// idledOut is the cause of an attempt's end if no session was open in it for too long.
type idledOut struct{ limit time.Duration }

// Error returns the message.
func (e idledOut) Error() string { return fmt.Sprintf("no session was open for %s", e.limit) }

// idleTimeout ends an attempt when no session has been open in it for a while, counted from its start or from the end of
// its last session. The zero value only counts sessions. Its methods may be called from several goroutines at once.
type idleTimeout struct {
	mu    sync.Mutex
	open  int
	limit time.Duration // 0 means no limit
	timer *time.Timer   // nil before begin and after end
	// changed, if not nil, is called with mu held when the first session begins and when the last one ends.
	changed func(open bool)
}

// idleLimit returns the idle time-out of a spec, or 0 if it has none.
func idleLimit(spec *structpb.Struct) time.Duration {
	limit, err := time.ParseDuration(spec.GetFields()["idleTimeout"].GetStringValue())
	if err != nil { // the definition was validated
		return 0
	}
	return max(limit, 0)
}

// begin starts the idle time-out, counted from the moment from. It calls stop when the time-out expires. changed sets the
// field of that name.
func (t *idleTimeout) begin(limit time.Duration, from time.Time, stop func(error), changed func(open bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed = changed
	if limit <= 0 || t.timer != nil {
		return
	}
	t.limit = limit
	t.timer = time.AfterFunc(max(limit-time.Since(from), 0), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.open == 0 && t.timer != nil {
			stop(idledOut{limit})
		}
	})
	if t.open > 0 {
		t.timer.Stop()
	}
}

// end stops the idle time-out, because the program has ended.
func (t *idleTimeout) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.timer, t.changed = nil, nil
}

// enter counts a session as open until leave is called. leave may be called more than once.
func (t *idleTimeout) enter() (leave func()) {
	t.add(1)
	return sync.OnceFunc(func() { t.add(-1) })
}

func (t *idleTimeout) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.open > 0
	t.open += n
	is := t.open > 0
	if is == before {
		return
	}
	if t.timer != nil {
		if t.timer.Stop(); !is {
			t.timer.Reset(t.limit)
		}
	}
	if t.changed != nil {
		t.changed(is)
	}
}
