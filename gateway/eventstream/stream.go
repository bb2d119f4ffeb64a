package eventstream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Stream is one response of server-sent events. It ends if a write blocks longer than the write time-out. It is safe for
// concurrent use.
type Stream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	keepAlive  time.Duration
	timeout    time.Duration

	stop func() // stops the comments
	wg   sync.WaitGroup

	mu      sync.Mutex
	begun   bool
	written time.Time
	err     error // error of the first failed write
}

// New returns a stream that sends a comment after each pause of keepAlive. It sends nothing before Begin.
func New(w http.ResponseWriter, keepAlive, timeout time.Duration) *Stream {
	return &Stream{w: w, controller: http.NewResponseController(w), keepAlive: keepAlive, timeout: timeout, stop: func() {}}
}

// retryHint returns a line that makes clients reconnect after about a second, spread out randomly.
func retryHint() string {
	return fmt.Sprintf("retry: %d\n", 500+rand.IntN(1000))
}

// Begin sends the headers. A second Begin is a no-op.
func (s *Stream) Begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun {
		return s.err
	}
	s.begun = true
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.wg.Go(func() { s.sendComments(ctx) })
	return s.writeLocked([]byte(retryHint() + "\n"))
}

// HasBegun reports whether the headers have been sent.
func (s *Stream) HasBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// Write sends events.
func (s *Stream) Write(frames []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeLocked(frames)
}

func (s *Stream) writeLocked(text []byte) error {
	if s.err != nil {
		return s.err
	}
	s.written = time.Now()
	_ = s.controller.SetWriteDeadline(s.written.Add(s.timeout)) // only the servers of tests have no deadlines
	_, err := s.w.Write(text)
	if err == nil {
		err = s.controller.Flush()
	}
	if err != nil {
		s.err = fmt.Errorf("the client has stalled or disconnected: %w", err)
	}
	return s.err
}

// Close stops the comments. If why is not "", Close first sends it as the reason why the stream ends early; the client
// will reconnect.
func (s *Stream) Close(why string) {
	s.stop()
	if why != "" {
		_ = s.Write([]byte(": " + strings.ReplaceAll(why, "\n", " ") + "\n" + retryHint() + "\n"))
	}
	s.wg.Wait()
}

// sendComments keeps an idle connection open, because proxies close silent connections.
func (s *Stream) sendComments(ctx context.Context) {
	for pause := s.keepAlive; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		s.mu.Lock()
		if pause = s.keepAlive - time.Since(s.written); pause <= 0 {
			_ = s.writeLocked([]byte(":\n\n")) // the next write of an event returns the error
			pause = s.keepAlive
		}
		s.mu.Unlock()
	}
}
