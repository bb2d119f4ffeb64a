package session

import (
	"encoding/json"
	"net"
	"sync"
	"time"
)

// frameTimeout is how long a relay may take to read a frame before it counts as gone.
const frameTimeout = 10 * time.Second

// turn is a relay's message, from its arrival to the result.
type turn struct {
	request request
	conn    net.Conn
	// gone is closed when the relay has closed its connection.
	gone chan struct{}
	// result is closed when the program has printed the result of the turn.
	result chan struct{}
	// answered is closed when the relay needs no further frames.
	answered chan struct{}

	mu     sync.Mutex
	frames *json.Encoder
	failed bool
}

func newTurn(conn net.Conn, r request) *turn {
	return &turn{
		request: r, conn: conn, frames: json.NewEncoder(conn),
		gone: make(chan struct{}), result: make(chan struct{}), answered: make(chan struct{}),
	}
}

// send sends a frame to the relay. After a failure the connection is closed and send is a no-op.
func (t *turn) send(f frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sendLocked(f)
}

// sendLocked does what send does. The caller holds mu.
func (t *turn) sendLocked(f frame) {
	if t.failed {
		return
	}
	_ = t.conn.SetWriteDeadline(time.Now().Add(frameTimeout))
	if t.frames.Encode(f) != nil {
		t.failed = true
		t.conn.Close()
	}
}

// isGone reports whether the relay has closed its connection.
func (t *turn) isGone() bool {
	select {
	case <-t.gone:
		return true
	default:
		return false
	}
}
