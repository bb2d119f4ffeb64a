package executortest

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor"
)

// connected returns the two ends of a TCP connection inside an attempt.
func (h InsideHarness) connected(t *testing.T, in executor.Inside) (near, far net.Conn) {
	t.Helper()
	listener, err := in.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() }) // closing the listener may close what it has accepted
	accepted := make(chan net.Conn, 1)
	go func() {
		defer close(accepted)
		if c, err := listener.Accept(); err == nil {
			accepted <- c
		}
	}()
	if near, err = in.Dial(t.Context(), portOf(t, listener)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	far, ok := <-accepted
	if !ok {
		t.Fatal("the listener accepts nothing")
	}
	t.Cleanup(func() { far.Close() })
	return near, far
}

func portOf(t *testing.T, l net.Listener) int {
	t.Helper()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok || address.Port == 0 {
		t.Fatalf("the address of the listener is %v", l.Addr())
	}
	return address.Port
}

// halfClose closes the sending direction of a connection.
func halfClose(t *testing.T, c net.Conn) {
	t.Helper()
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		t.Fatalf("a %T does not half-close", c)
	}
	if err := half.CloseWrite(); err != nil {
		t.Error(err)
	}
}

func (h InsideHarness) networkHalfClose(t *testing.T) {
	near, far := h.connected(t, h.Enter(t))
	question, answer := strings.Repeat("question ", 100_000), strings.Repeat("answer ", 100_000)
	asked := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(far) // ends with the half-close
		asked <- string(text)
		_, _ = io.WriteString(far, answer)
		far.Close()
	}()
	if _, err := io.WriteString(near, question); err != nil {
		t.Fatal(err)
	}
	halfClose(t, near)
	var got bytes.Buffer
	if _, err := got.ReadFrom(near); err != nil {
		t.Error(err)
	}
	if text := <-asked; text != question {
		t.Errorf("%d bytes of the question arrive, want %d", len(text), len(question))
	}
	if got.String() != answer {
		t.Errorf("%d bytes of the answer arrive, want %d", got.Len(), len(answer))
	}
}

func (h InsideHarness) networkRefused(t *testing.T) {
	in := h.Enter(t)
	listener, err := in.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	port := portOf(t, listener)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	// A program that is just being started may have inherited the socket and hold it a
	// little longer.
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		conn, err := in.Dial(t.Context(), port)
		if h.isRefusal(err) {
			break
		}
		if err == nil {
			conn.Close()
		}
		if time.Now().After(until) {
			t.Fatalf("a port on which nothing listens: error %v, want a Refusal", err)
		}
	}
	for _, port := range []int{0, -1, 65536} {
		_, err := in.Dial(t.Context(), port)
		h.wantRefusal(t, "a number that is no port", err)
	}
}

func (h InsideHarness) networkTaken(t *testing.T) {
	in := h.Enter(t)
	listener, err := in.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, err = in.Listen(t.Context(), portOf(t, listener))
	h.wantRefusal(t, "a port that is in use", err)
}
