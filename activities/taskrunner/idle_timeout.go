package taskrunner

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
)

// idledOut is the cause for which an attempt ends that no session was open in for too long.
type idledOut struct{ limit time.Duration }

// Error returns the message.
func (e idledOut) Error() string { return fmt.Sprintf("no session was open for %s", e.limit) }

// idleTimeout ends an attempt when no session has been open in it for a time, since its start or the end of the last one. The zero
// value only counts sessions. Its methods may be called from several goroutines at once.
type idleTimeout struct {
	mu    sync.Mutex
	open  int
	limit time.Duration // 0: there is none
	timer *time.Timer   // nil: it has not begun, or has ended
	// changed is called when the first session begins, or the last one ends, with mu held; nil: nothing is.
	changed func(open bool)
}

// idleLimit returns the idle time-out that a spec asks for, or 0.
func idleLimit(spec *structpb.Struct) time.Duration {
	limit, err := time.ParseDuration(spec.GetFields()["idleTimeout"].GetStringValue())
	if err != nil { // the definition was checked
		return 0
	}
	return max(limit, 0)
}

// begin has the time run from a moment on. stop is called when it is over, and changed as the field says.
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

// end ends the time: nothing runs any more.
func (t *idleTimeout) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.timer, t.changed = nil, nil
}

// enter counts a session until leave, which may be called more than once.
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
