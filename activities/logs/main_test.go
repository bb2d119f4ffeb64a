package logs

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"switchyard/activities/store/storetest"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

var attempt = Attempt{Run: "ci-0k", Task: "build", Attempt: 1, Claim: 4}

// onEach runs a test on each kind of store.
func onEach(t *testing.T, test func(t *testing.T, s Store)) {
	t.Run("folder", func(t *testing.T) { test(t, storetest.Open(t, t.TempDir())) })
	t.Run("memory", func(t *testing.T) { test(t, storetest.Open(t, "mem://")) })
}

// hooked is a store whose Put first calls a function and fails if the function does.
type hooked struct {
	Store
	put func(ctx context.Context) error
}

func (s hooked) Put(ctx context.Context, key string, value []byte) error {
	if err := s.put(ctx); err != nil {
		return err
	}
	return s.Store.Put(ctx, key, value)
}

// log is the content of a log.
type log struct {
	entries        []*v1.LogEntry
	stdout, stderr []byte
	chunks         int64
	ended          bool
}

// readAll reads all that exists of a log.
func readAll(t testing.TB, s Store, a Attempt) log {
	t.Helper()
	var l log
	for {
		entries, next, ended, err := Read(context.Background(), s, a, l.chunks)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			switch {
			case e.Task != a.Task || e.Attempt != a.Attempt || e.Time.AsTime().Year() < 2000:
				t.Fatalf("entry of %s, attempt %d, at %v", e.Task, e.Attempt, e.Time.AsTime())
			case e.Stream == Stdout:
				l.stdout = append(l.stdout, e.Data...)
			case e.Stream == Stderr:
				l.stderr = append(l.stderr, e.Data...)
			default:
				t.Fatalf("entry of stream %q", e.Stream)
			}
		}
		l.entries = append(l.entries, entries...)
		l.ended = l.ended || ended
		if next == l.chunks {
			return l
		}
		l.chunks = next
	}
}

func write(t testing.TB, w *Writer, stream, text string) {
	t.Helper()
	if n, err := w.Stream(stream).Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("Write returned %d, %v for %d bytes", n, err, len(text))
	}
}

func closeWriter(t testing.TB, w *Writer) {
	t.Helper()
	if err := errors.Join(w.Close(context.Background()), w.Close(context.Background())); err != nil {
		t.Fatalf("close: %v", err)
	}
}

// kill ends a writer like a kill of its process. A write to the store that is in progress ends first.
func kill(w *Writer) {
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.sending {
		w.idle.Wait()
	}
}

// filler returns n bytes whose content shows their position.
func filler(n int) string {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		b.WriteString("line ")
		b.WriteString(string(rune('a' + i%26)))
		b.WriteByte('\n')
	}
	return b.String()[:n]
}
