package edge

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"switchyard/gateway/rpcerror"
	"sync"
	"time"

	"connectrpc.com/connect"
)

// boundedBody is the body of a call. It must arrive in time, and counts against the limits until the call
// ends, because its message lives that long.
type boundedBody struct {
	io.ReadCloser
	call       *http.Request
	bounds     *Bounds
	controller *http.ResponseController
	compressed bool
	began      time.Time
	deadline   time.Time

	// mu guards the fields below: a server may still read while the call is being released.
	mu       sync.Mutex
	read     int64
	held     int64
	released bool
}

func newBoundedBody(b *Bounds, w http.ResponseWriter, r *http.Request) *boundedBody {
	body := &boundedBody{
		ReadCloser: r.Body, call: r, bounds: b, controller: http.NewResponseController(w), compressed: isCompressed(r), began: time.Now(),
	}
	body.extend()
	return body
}

// isCompressed reports whether the headers of a call announce compressed messages.
func isCompressed(r *http.Request) bool {
	for _, header := range []string{"Content-Encoding", "Connect-Content-Encoding", "Grpc-Encoding"} {
		if encoding := r.Header.Get(header); encoding != "" && encoding != "identity" {
			return true
		}
	}
	return false
}

// Read reads data that arrives in time and within the limits.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if err := b.hold(int64(n)); err != nil {
			return 0, err
		}
		b.extend()
	}
	switch {
	case err == nil, b.call.Context().Err() != nil:
	case errors.Is(err, io.EOF):
		// The deadline belongs to the connection, and must not apply to what follows the body.
		_ = b.controller.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = connect.NewError(connect.CodeDeadlineExceeded,
			fmt.Errorf("the body of the call did not arrive within %s plus one second per %d KiB", b.bounds.limits.BodyTime, bodyRate>>10))
	default:
		err = rpcerror.Invalid("read the body of the call: %w", err)
	}
	return n, err
}

// hold counts n more bytes against the limits.
func (b *boundedBody) hold(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read += n
	want := b.read
	if b.compressed {
		want = max(want, b.bounds.compressedBytes)
	}
	if b.released || want <= b.held {
		return nil
	}
	if !b.bounds.bytes.TryAcquire(want - b.held) {
		return connect.NewError(connect.CodeResourceExhausted,
			fmt.Errorf("the gateway is at its limit of %d MiB of open calls; try again later", b.bounds.limits.BodyBytes>>20))
	}
	b.held = want
	return nil
}

// extend sets the deadline for the bytes read plus a margin. It moves the deadline only in steps of at least
// a second, because each move has a cost.
func (b *boundedBody) extend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	deadline := b.began.Add(b.bounds.limits.BodyTime + time.Duration(b.read)*time.Second/bodyRate)
	if deadline.Sub(b.deadline) >= time.Second {
		b.deadline = deadline
		_ = b.controller.SetReadDeadline(deadline) // only the servers of tests have no deadlines
	}
}

// release returns the held bytes to the limits.
func (b *boundedBody) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bounds.bytes.Release(b.held)
	b.held, b.released = 0, true
}
