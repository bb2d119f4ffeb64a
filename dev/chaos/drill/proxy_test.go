package drill

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	testneeds.NoLeaks(m)
}

// echo starts a server that sends back what it receives, and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

func dial(t *testing.T, address string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, bufio.NewReader(conn)
}

// silent reports whether nothing arrives for a while.
func silent(t *testing.T, conn net.Conn, r *bufio.Reader) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if line, err := r.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a cut connection gives %q, %v; want silence", line, err)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

func says(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text+"\n"); err != nil {
		t.Fatal(err)
	}
}

func hears(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	if line, err := r.ReadString('\n'); err != nil || line != want+"\n" {
		t.Errorf("got %q, %v; want %q", line, err, want)
	}
}

func TestProxy(t *testing.T) {
	p, err := StartProxy(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	conn, r := dial(t, p.Address())
	says(t, conn, "one")
	hears(t, r, "one")

	p.Cut()
	p.Cut() // has no effect
	says(t, conn, "two")
	silent(t, conn, r)
	late, lateReader := dial(t, p.Address())
	says(t, late, "three")
	silent(t, late, lateReader)

	p.Restore()
	p.Restore()
	hears(t, r, "two")
	hears(t, lateReader, "three")
	conn.Close()
	says(t, late, "four")
	hears(t, lateReader, "four")
}

// TestProxyEnds closes a proxy while connections are open, cut off or not.
func TestProxyEnds(t *testing.T) {
	p, err := StartProxy(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	conn, r := dial(t, p.Address())
	says(t, conn, "one")
	hears(t, r, "one")
	p.Cut()
	dumb, dumbReader := dial(t, p.Address())
	says(t, dumb, "two")
	p.Close()
	for _, reader := range []*bufio.Reader{r, dumbReader} {
		if line, err := reader.ReadString('\n'); err == nil {
			t.Errorf("a closed proxy says %q", line)
		}
	}
}
