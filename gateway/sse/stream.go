package sse

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxWrite is how many bytes of events are gathered for one write.
const maxWrite = 64 << 10

// stream is one answer of server-sent events. A reader that takes nothing for the write time-out ends it. It is safe for
// concurrent use.
type stream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	keepAlive  time.Duration
	timeout    time.Duration

	stop func() // ends the comments
	wg   sync.WaitGroup

	mu      sync.Mutex
	begun   bool
	written time.Time
	err     error // of the first write that failed
}

// newStream returns a stream that sends a comment after each pause of keepAlive. Nothing is sent before begin.
func newStream(w http.ResponseWriter, keepAlive, timeout time.Duration) *stream {
	return &stream{w: w, controller: http.NewResponseController(w), keepAlive: keepAlive, timeout: timeout, stop: func() {}}
}

// retryHint returns a line that makes clients that lose the stream return after about a second, not all at once.
func retryHint() string {
	return fmt.Sprintf("retry: %d\n", 500+rand.IntN(1000))
}

// begin sends the headers. A second begin does nothing.
func (s *stream) begin() error {
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

// hasBegun reports whether the headers have been sent.
func (s *stream) hasBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// write sends events.
func (s *stream) write(frames []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeLocked(frames)
}

func (s *stream) writeLocked(text []byte) error {
	if s.err != nil {
		return s.err
	}
	s.written = time.Now()
	_ = s.controller.SetWriteDeadline(s.written.Add(s.timeout)) // a server without deadlines is a test's
	_, err := s.w.Write(text)
	if err == nil {
		err = s.controller.Flush()
	}
	if err != nil {
		s.err = fmt.Errorf("the reader takes nothing, or has gone: %w", err)
	}
	return s.err
}

// close says why the stream ends before its end event, unless why is "", and stops the comments. The client returns.
func (s *stream) close(why string) {
	s.stop()
	if why != "" {
		_ = s.write([]byte(": " + strings.ReplaceAll(why, "\n", " ") + "\n" + retryHint() + "\n"))
	}
	s.wg.Wait()
}

// sendComments keeps the connection open while there are no events: proxies close one that is silent.
func (s *stream) sendComments(ctx context.Context) {
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

// batch gathers events for a stream.
type batch struct {
	stream *stream
	text   []byte
}

// add adds an event, and sends what has been gathered if that is much.
func (b *batch) add(frame []byte) error {
	b.text = append(b.text, frame...)
	if len(b.text) < maxWrite {
		return nil
	}
	return b.flush()
}

// flush sends what has been gathered.
func (b *batch) flush() error {
	if len(b.text) == 0 {
		return nil
	}
	text := b.text
	b.text = b.text[:0]
	return b.stream.write(text)
}
