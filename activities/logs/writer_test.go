package logs

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
)

func TestOutputIsReadableWhileTheTaskRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var puts atomic.Int64
		s := hooked{storetest.Open(t, "mem://"), func(context.Context) error { puts.Add(1); return nil }}
		w := NewWriter(s, attempt, Options{})
		write(t, w, Stdout, "one\n")
		time.Sleep(250 * time.Millisecond)
		if l := readAll(t, s, attempt); string(l.stdout) != "one\n" || l.ended {
			t.Errorf("after 250 ms: %q, ended %t", l.stdout, l.ended)
		}
		// A line every 10 ms for a minute takes at most five blobs per second.
		puts.Store(0)
		for range 6000 {
			write(t, w, Stderr, "x\n")
			time.Sleep(10 * time.Millisecond)
		}
		if n := puts.Load(); n > 300 {
			t.Errorf("%d blobs in a minute", n)
		}
		time.Sleep(time.Minute)
		puts.Store(0)
		time.Sleep(time.Hour)
		if n := puts.Load(); n > 0 {
			t.Errorf("%d blobs while nothing was printed", n)
		}
		closeWriter(t, w)
		l := readAll(t, s, attempt)
		if string(l.stdout) != "one\n" || len(l.stderr) != 12000 || !l.ended {
			t.Errorf("at the end: %q, %d bytes, ended %t", l.stdout, len(l.stderr), l.ended)
		}
		for i, e := range l.entries[1:] {
			if gap := e.Time.AsTime().Sub(l.entries[i].Time.AsTime()); gap < 10*time.Millisecond {
				t.Fatalf("lines that came 10 ms apart have times %v apart", gap)
			}
		}
	})
}

func TestNumberOfBlobs(t *testing.T) {
	for name, c := range map[string]struct {
		print func(w *Writer)
		want  int64
	}{
		"prints nothing":     {func(*Writer) {}, 0},
		"prints no bytes":    {func(w *Writer) { write(t, w, Stdout, "") }, 0},
		"short":              {func(w *Writer) { write(t, w, Stdout, "a"); write(t, w, Stderr, "b") }, 1},
		"more than a chunk":  {func(w *Writer) { write(t, w, Stdout, filler(1<<20)) }, 2},
		"ends after a flush": {func(w *Writer) { write(t, w, Stdout, "a"); time.Sleep(time.Second) }, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := storetest.Open(t, "mem://")
			w := NewWriter(s, attempt, Options{})
			c.print(w)
			closeWriter(t, w)
			l := readAll(t, s, attempt)
			if l.chunks != c.want || l.ended != (c.want > 0) {
				t.Errorf("%s: %d blobs, ended %t; want %d", name, l.chunks, l.ended, c.want)
			}
		})
	}
}

func TestWriteAfterCloseIsRefused(t *testing.T) {
	w := NewWriter(storetest.Open(t, "mem://"), attempt, Options{})
	write(t, w, Stdout, "kept")
	closeWriter(t, w)
	if n, err := w.Stream(Stdout).Write([]byte("x")); n != 0 || !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Write returned %d, %v", n, err)
	}
	if text, _ := w.Tail(Stdout); text != "kept" {
		t.Errorf("tail %q", text)
	}
}

func TestLogHasALimit(t *testing.T) {
	onEach(t, func(t *testing.T, s Store) {
		w := NewWriter(s, attempt, Options{MaxBytes: 5000, ChunkBytes: 1 << 10, TailBytes: 100})
		text := filler(6000)
		for i := 0; i < len(text); i += 700 {
			write(t, w, Stdout, text[i:min(i+700, len(text))])
		}
		write(t, w, Stderr, "late")
		closeWriter(t, w)
		l := readAll(t, s, attempt)
		if string(l.stdout) != text[:5000] {
			t.Errorf("the log has %d bytes, want the first 5000", len(l.stdout))
		}
		if n := strings.Count(string(l.stderr), "full at 5000 bytes"); n != 1 || strings.Contains(string(l.stderr), "late") {
			t.Errorf("stderr in the log: %q", l.stderr)
		}
		if last := l.entries[len(l.entries)-1]; !strings.Contains(string(last.Data), "full") || !l.ended {
			t.Errorf("last entry %q, ended %t", last.Data, l.ended)
		}
		if tail, truncated := w.Tail(Stdout); tail != text[5900:] || !truncated {
			t.Errorf("tail %q, %t", tail, truncated)
		}
		if tail, _ := w.Tail(Stderr); tail != "late" {
			t.Errorf("tail of stderr %q", tail)
		}
	})
}

func TestLimitThatIsExactlyReachedIsNotExceeded(t *testing.T) {
	s := storetest.Open(t, "mem://")
	w := NewWriter(s, attempt, Options{MaxBytes: 10})
	write(t, w, Stdout, "0123456789")
	closeWriter(t, w)
	if l := readAll(t, s, attempt); string(l.stdout) != "0123456789" || len(l.stderr) != 0 {
		t.Errorf("log %q, %q", l.stdout, l.stderr)
	}
}

// Output of any size and timing is read back byte by byte, and a follower that reads now and then sees the same.
func TestEverythingComesBackInOrder(t *testing.T) {
	onEach(t, func(t *testing.T, s Store) {
		var claim int32
		rapid.Check(t, func(rt *rapid.T) {
			type step struct {
				stream string
				data   []byte
				pause  time.Duration
				follow bool
			}
			steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
				return step{
					stream: rapid.SampledFrom([]string{Stdout, Stderr}).Draw(rt, "stream"),
					data: rapid.OneOf(
						rapid.SliceOfN(rapid.Byte(), 0, 40),
						rapid.Map(rapid.IntRange(0, 5000), func(n int) []byte { return []byte(filler(n)) }),
					).Draw(rt, "data"),
					pause:  time.Duration(rapid.SampledFrom([]int{0, 0, 1, 20, 150, 500}).Draw(rt, "pause")) * time.Millisecond,
					follow: rapid.Bool().Draw(rt, "follow"),
				}
			}), 0, 40).Draw(rt, "steps")
			keep := rapid.IntRange(1, 6000).Draw(rt, "tail")
			options := Options{ChunkBytes: rapid.IntRange(1, 4000).Draw(rt, "chunk"), TailBytes: keep}
			claim++
			a := Attempt{Run: "ci-0k", Task: "build", Attempt: 0, Claim: claim}

			want := map[string][]byte{}
			synctest.Test(t, func(t *testing.T) {
				w := NewWriter(s, a, options)
				followed := map[string][]byte{}
				var from int64
				follow := func() bool {
					entries, next, ended, err := Read(t.Context(), s, a, from)
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range entries {
						followed[e.Stream] = append(followed[e.Stream], e.Data...)
					}
					more := next > from
					from = next
					if ended && more {
						more = false
					}
					return more
				}
				for _, step := range steps {
					write(t, w, step.stream, string(step.data))
					want[step.stream] = append(want[step.stream], step.data...)
					time.Sleep(step.pause)
					if step.follow {
						follow()
					}
				}
				closeWriter(t, w)
				for follow() {
				}
				for _, stream := range []string{Stdout, Stderr} {
					if !slices.Equal(followed[stream], want[stream]) {
						t.Errorf("%s: a follower has %d bytes, want %d", stream, len(followed[stream]), len(want[stream]))
					}
					checkTail(t, w, stream, want[stream], keep)
				}
				l := readAll(t, s, a)
				if !slices.Equal(l.stdout, want[Stdout]) || !slices.Equal(l.stderr, want[Stderr]) {
					t.Errorf("the log is not what was printed: %d and %d bytes, want %d and %d",
						len(l.stdout), len(l.stderr), len(want[Stdout]), len(want[Stderr]))
				}
				if printed := len(want[Stdout])+len(want[Stderr]) > 0; l.ended != printed {
					t.Errorf("ended %t", l.ended)
				}
			})
			if t.Failed() {
				rt.FailNow()
			}
		})
	})
}

func TestBothStreamsAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s Store) {
		w := NewWriter(s, attempt, Options{ChunkBytes: 4 << 10, FlushInterval: time.Millisecond})
		text := filler(300_000)
		done := make(chan struct{})
		var others, printers sync.WaitGroup
		for _, stream := range []string{Stdout, Stderr} {
			printers.Go(func() {
				for i := 0; i < len(text); i += 997 {
					write(t, w, stream, text[i:min(i+997, len(text))])
				}
			})
			others.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						w.Tail(stream)
						if _, _, _, err := Read(context.Background(), s, attempt, 0); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		printers.Wait()
		close(done)
		others.Wait()
		closeWriter(t, w)
		if l := readAll(t, s, attempt); string(l.stdout) != text || string(l.stderr) != text || !l.ended {
			t.Errorf("the log has %d and %d bytes, ended %t; want %d each", len(l.stdout), len(l.stderr), l.ended, len(text))
		}
	})
}

func TestAttempts(t *testing.T) {
	onEach(t, func(t *testing.T, s Store) {
		for _, a := range []Attempt{
			dispatch("build", 10, 12), dispatch("build", 2, 3), dispatch("build", 2, 10), dispatch("build", 0, 0),
			dispatch("build-2", 7, 7), {Run: "ci-0k2", Task: "build", Attempt: 8, Claim: 8}, dispatch("build[1]", 9, 9),
		} {
			w := NewWriter(s, a, Options{})
			write(t, w, Stdout, "x")
			closeWriter(t, w)
		}
		got, err := Attempts(t.Context(), s, "ci-0k", "build")
		want := []Attempt{dispatch("build", 0, 0), dispatch("build", 2, 3), dispatch("build", 2, 10), dispatch("build", 10, 12)}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
		if got, err := Attempts(t.Context(), s, "ci-0k", "quiet"); err != nil || len(got) != 0 {
			t.Errorf("a task without a log: %v, %v", got, err)
		}
	})
}

func TestReadIsBoundedAndContinues(t *testing.T) {
	s := storetest.Open(t, "mem://")
	w := NewWriter(s, attempt, Options{})
	text := filler(5 << 20)
	write(t, w, Stdout, text)
	closeWriter(t, w)
	var got []byte
	for from, ended := int64(0), false; !ended; {
		entries, next, e, err := Read(t.Context(), s, attempt, from)
		if err != nil || next == from {
			t.Fatalf("Read from %d: next %d, %v", from, next, err)
		}
		before := len(got)
		for _, entry := range entries {
			got = append(got, entry.Data...)
		}
		if len(got)-before > 2<<20 {
			t.Errorf("one call returned %d bytes", len(got)-before)
		}
		from, ended = next, e
	}
	if string(got) != text {
		t.Errorf("read %d bytes, want %d", len(got), len(text))
	}
}

func TestReadRefusesAMalformedChunk(t *testing.T) {
	s := storetest.Open(t, "mem://")
	if err := s.Put(t.Context(), attempt.chunkKey(0), []byte{200}); err != nil {
		t.Fatal(err)
	}
	_, next, _, err := Read(t.Context(), s, attempt, 0)
	if !errors.Is(err, errMalformed) || !strings.Contains(err.Error(), attempt.chunkKey(0)) || next != 0 {
		t.Errorf("next %d, error %v", next, err)
	}
}

// counting records which keys a reader requests from a store.
type counting struct {
	Store
	asked []string
}

func (c *counting) Get(ctx context.Context, key string) ([]byte, error) {
	c.asked = append(c.asked, key)
	return c.Store.Get(ctx, key)
}

func TestReadOfAnUnchangedLogAsksTheStoreOnce(t *testing.T) {
	s := &counting{Store: storetest.Open(t, "mem://")}
	for _, from := range []int64{0, 7} {
		s.asked = nil
		entries, next, ended, err := Read(t.Context(), s, attempt, from)
		if len(entries) != 0 || next != from || ended || err != nil {
			t.Errorf("Read from %d: %v, %d, %t, %v", from, entries, next, ended, err)
		}
		if want := []string{storekey.LogChunk("ci-0k", 0, "build", 1, 4, from)}; !slices.Equal(s.asked, want) {
			t.Errorf("asked for %q, want %q", s.asked, want)
		}
	}
}

func TestEntriesAreEncodedWithinTheirCost(t *testing.T) {
	var c chunk
	longest := time.Unix(timestamppb.Now().Seconds, 999_999_999)
	for range 1000 {
		for _, stream := range []string{Stdout, Stderr} {
			c.add(stream, printer{task: strings.Repeat("n", 80), attempt: math.MaxInt32, notice: true}, longest, "", []byte("x"), 1<<20)
		}
	}
	if got := len(c.encode(nil)); got > c.encodedSize() {
		t.Errorf("2000 entries of one byte take %d bytes, more than %d", got, c.encodedSize())
	}
}
