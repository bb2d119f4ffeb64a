package wire

import (
	"net"
	"testing"
	"time"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// tcpPair returns the two ends of a TCP connection.
func tcpPair(t testing.TB) (client, server *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = dialed.Close(), accepted.Close() })
	return dialed.(*net.TCPConn), accepted.(*net.TCPConn)
}

// sessionPair returns the two ends of a session.
func sessionPair(t testing.TB) (client, server *Session) {
	t.Helper()
	a, b := tcpPair(t)
	client, server = NewSession(a, true), NewSession(b, false)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

// streamPair returns the two ends of a stream.
func streamPair(t testing.TB) (client, server Conn) {
	t.Helper()
	a, b := sessionPair(t)
	return openStream(t, a, b)
}

func openStream(t testing.TB, a, b *Session) (opened, accepted Conn) {
	t.Helper()
	opened, err := a.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err = b.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return opened, accepted
}

// patience bounds the wait for things that take no time on an idle machine.
const patience = time.Minute

// isClosed waits until a channel is closed, or fails the test.
func isClosed(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s does not end", what)
	}
}
