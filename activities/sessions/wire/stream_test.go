package wire

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestStreamHalfCloses(t *testing.T) {
	client, server := streamPair(t)
	if _, err := io.WriteString(client, "ping"); err != nil {
		t.Fatal(err)
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a write behind the end: %v", err)
	}
	for range 2 {
		got, err := io.ReadAll(server)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := server.Write(append(got, "pong "...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); string(got) != "pingpong pong " || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestStreamCarriesMuchBothWays(t *testing.T) {
	client, server := streamPair(t)
	const size = 4 * window
	var work sync.WaitGroup
	for i, c := range []Conn{client, server} {
		sent, received := sha256.New(), sha256.New()
		work.Go(func() {
			random := rand.NewChaCha8([32]byte{byte(i)})
			if _, err := io.CopyN(io.MultiWriter(c, sent), random, size); err != nil {
				t.Error(err)
			}
			if err := c.CloseWrite(); err != nil {
				t.Error(err)
			}
		})
		other := []Conn{server, client}[i]
		work.Go(func() {
			// Use WriteTo, through io.Copy, in one direction, and Read in the other.
			from := io.Reader(other)
			if i == 0 {
				from = struct{ io.Reader }{other}
			}
			if n, err := io.Copy(received, from); n != size || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
		defer func() {
			if !bytes.Equal(sent.Sum(nil), received.Sum(nil)) {
				t.Error("other bytes arrive than were sent")
			}
		}()
	}
	work.Wait()
}

// TestCloseDeliversWhatWasWritten closes a stream after writing more than the other side has read.
func TestCloseDeliversWhatWasWritten(t *testing.T) {
	for name, size := range map[string]int{"within the window": 1 << 20, "the whole window": window - (window/maxBlock+1)*blockHeader - maxBlock} {
		t.Run(name, func(t *testing.T) {
			client, server := streamPair(t)
			// The other side widens the window when it accepts the stream.
			if _, err := server.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			if err := client.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("read a closed stream: %v", err)
			}
			if got, err := io.ReadAll(server); len(got) != size || err != nil {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// TestCloseWaitsForRoomInTheWindow closes a stream when there is no room even for the final block.
func TestCloseWaitsForRoomInTheWindow(t *testing.T) {
	client, server := streamPair(t)
	_ = client.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	sent := 0
	for {
		// The writes end at the border of a block.
		n, err := client.Write(make([]byte, 60))
		if sent += n; err != nil {
			break
		}
	}
	if client.(*stream).broken {
		t.Skip("the window ends within a block")
	}
	_ = client.Close()
	if got, err := io.ReadAll(server); len(got) != sent || err != nil {
		t.Errorf("%d bytes of %d, %v", len(got), sent, err)
	}
}

func TestLossIsReportedInsteadOfAnEnd(t *testing.T) {
	for name, lose := range map[string]func(client, server *Session, opened Conn){
		"session":  func(client, _ *Session, _ Conn) { _ = client.Close() },
		"given up": func(_, _ *Session, c Conn) { Abort(c, "") },
		"reason":   func(_, _ *Session, c Conn) { Abort(c, "the gateway is shutting down") },
		"shutdown": func(client, _ *Session, _ Conn) { _ = client.CloseWith("the gateway is shutting down") },
	} {
		t.Run(name, func(t *testing.T) {
			client, server := sessionPair(t)
			server.DescribeLoss("the link is lost")
			opened, accepted := openStream(t, client, server)
			if _, err := io.WriteString(opened, "half of it"); err != nil {
				t.Fatal(err)
			}
			lose(client, server, opened)
			got, err := io.ReadAll(accepted)
			want := map[string]string{"session": "the link is lost", "given up": goneText, "reason": "the gateway is shutting down", "shutdown": "the gateway is shutting down"}[name]
			if string(got) != "half of it" || !errors.Is(err, ErrLost) || err.Error() != want {
				t.Errorf("%q, %v", got, err)
			}
			if _, err := accepted.Write([]byte("x")); !errors.Is(err, ErrLost) {
				t.Errorf("a write to a lost stream: %v", err)
			}
		})
	}
}

// TestStuckWriterSeesThatReaderHasGone checks that a blocked writer, which does not read or has already
// read the end, notices that the reader has left.
func TestStuckWriterSeesThatReaderHasGone(t *testing.T) {
	for _, halfClosed := range []bool{false, true} {
		a, b := tcpPair(t)
		brief := usualTimes
		brief.probe = 20 * time.Millisecond
		near, far := newSession(a, true, brief), newSession(b, false, brief)
		defer near.Close()
		defer far.Close()
		client, server := openStream(t, near, far)
		if halfClosed {
			_ = client.CloseWrite()
			if _, err := io.ReadAll(server); err != nil {
				t.Fatal(err)
			}
		}
		failed := make(chan error, 1)
		go func() {
			for {
				if _, err := server.Write(make([]byte, maxBlock)); err != nil {
					failed <- err
					return
				}
			}
		}()
		if _, err := io.ReadFull(client, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		Abort(client, "")
		select {
		case err := <-failed:
			if !errors.Is(err, ErrLost) {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("the writer is stuck")
		}
	}
}

func TestCloseWakesReadersAndWriters(t *testing.T) {
	client, _ := streamPair(t)
	var work sync.WaitGroup
	work.Go(func() {
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a reader: %v", err)
		}
	})
	started := make(chan struct{})
	work.Go(func() {
		close(started)
		for {
			if _, err := client.Write(make([]byte, maxBlock)); err != nil {
				if !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
					t.Errorf("a writer: %v", err)
				}
				return
			}
		}
	})
	<-started
	_ = client.Close()
	work.Wait()
}

func TestDeadlinesOfStream(t *testing.T) {
	client, server := streamPair(t)
	_ = client.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	_ = client.SetReadDeadline(time.Time{})
	if _, err := server.Write([]byte("later")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(client, got); err != nil || string(got) != "later" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestJoinRelaysHalfCloseAndReasons(t *testing.T) {
	left, a := streamPair(t)
	b, right := tcpPair(t)
	joined := make(chan [2]int64, 1)
	go func() {
		there, back := Join(a, b)
		joined <- [2]int64{there, back}
	}()
	_, _ = io.WriteString(left, "question")
	_ = left.CloseWrite()
	if got, err := io.ReadAll(right); string(got) != "question" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	_, _ = io.WriteString(right, "answer")
	_ = right.CloseWrite()
	if got, err := io.ReadAll(left); string(got) != "answer" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	if n := <-joined; n != [2]int64{8, 6} {
		t.Errorf("%v bytes", n)
	}

	left, a = streamPair(t)
	c, far := streamPair(t)
	closed := make(chan [2]int64, 2)
	if !OnClose(c, func(sent, received int64) { closed <- [2]int64{sent, received} }) {
		t.Error("an open stream is taken for a closed one")
	}
	go Join(a, c)
	_, _ = io.WriteString(far, "begin")
	Abort(far, "node n1 is shutting down")
	if got, err := io.ReadAll(left); string(got) != "begin" || err == nil || err.Error() != "node n1 is shutting down" {
		t.Errorf("%q, %v", got, err)
	}
	if n := <-closed; n != [2]int64{0, 5} {
		t.Errorf("%v bytes", n)
	}
}

// TestJoinRelaysReasonOfItsOwnSide checks that the far side gets the reason when the side that runs
// Join aborts a connection.
func TestJoinRelaysReasonOfItsOwnSide(t *testing.T) {
	left, a := streamPair(t)
	b, _ := streamPair(t)
	go Join(a, b)
	Abort(b, "the gateway is shutting down")
	if _, err := io.ReadAll(left); err == nil || err.Error() != "the gateway is shutting down" {
		t.Error(err)
	}
}

// TestJoinDeliversAnswerOfReaderThatStops checks that Join delivers the reply of a server that closes
// before it has read everything.
func TestJoinDeliversAnswerOfReaderThatStops(t *testing.T) {
	left, a := streamPair(t)
	b, right := streamPair(t)
	go Join(a, b)
	go func() {
		for {
			if _, err := left.Write(make([]byte, maxBlock)); err != nil {
				return
			}
		}
	}()
	_, _ = io.ReadFull(right, make([]byte, 10))
	_, _ = io.WriteString(right, "enough")
	_ = right.Close()
	if got, err := io.ReadAll(left); string(got) != "enough" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_ = left.Close()
}

func TestTooLargeBlockIsRefused(t *testing.T) {
	client, server := streamPair(t)
	if _, err := client.(*stream).y.Write([]byte{0x7f, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Error(err)
	}
}
