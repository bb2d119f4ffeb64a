package logs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchyard/activities/secrets/mask"
	"switchyard/activities/store/storetest"
)

// A writer that continues a log adds what is missing and nothing twice, wherever the previous writer was cut off. Notices
// of the system do not count as output.
func TestResume(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := storetest.Open(t, "mem://")
		a := attempt
		a.Run = fmt.Sprintf("r-%d", rapid.Uint64().Draw(rt, "run"))
		out, errs := filler(rapid.IntRange(0, 9000).Draw(rt, "stdout")), strings.ToUpper(filler(rapid.IntRange(0, 9000).Draw(rt, "stderr")))
		o := Options{ChunkBytes: 1 << 10, TailBytes: 100}
		w := NewWriter(s, a, o)
		seenOut, seenErr := rapid.IntRange(0, len(out)).Draw(rt, "out"), rapid.IntRange(0, len(errs)).Draw(rt, "err")
		write(t, w, Stdout, out[:seenOut])
		w.Notice("the engine was away")
		write(t, w, Stderr, errs[:seenErr])
		w.Notice("and is back")
		closed := rapid.Bool().Draw(rt, "closed") && seenOut == len(out) && seenErr == len(errs)
		if closed {
			closeWriter(t, w)
		} else {
			kill(w)
		}
		for range rapid.IntRange(1, 3).Draw(rt, "lives") {
			before := readAll(t, s, a)
			if w, err := Resume(context.Background(), s, a, o); err != nil {
				rt.Fatal(err)
			} else {
				for from, size := 0, rapid.IntRange(1, 3000).Draw(rt, "size"); from < len(out); from += size {
					write(t, w, Stdout, out[from:min(from+size, len(out))])
				}
				write(t, w, Stderr, errs)
				if text, _ := w.Tail(Stdout); text != out[max(0, len(out)-100):] {
					rt.Fatalf("the tail is %q", text)
				}
				closeWriter(t, w)
			}
			l := readAll(t, s, a)
			if string(l.stdout) != out || byTask(l) != errs || !l.ended && len(out)+len(errs) > 0 {
				rt.Fatalf("of %d and %d bytes, %d and %d of which were there, %d and %d are in the log, ended %t",
					len(out), len(errs), len(before.stdout), len(byTask(before)), len(l.stdout), len(byTask(l)), l.ended)
			}
			if before.ended && l.chunks != before.chunks {
				rt.Fatal("something follows the end")
			}
		}
	})
}

// Writers that hand their streams over log everything once, and mask a secret across the boundary.
func TestHandOver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := storetest.Open(t, "mem://")
		a := attempt
		a.Run = fmt.Sprintf("r-%d", rapid.Uint64().Draw(rt, "run"))
		text := rapid.StringMatching(`([a-c\n]|s3cret-value){0,200}`).Draw(rt, "text")
		o := Options{ChunkBytes: 1 << 10, TailBytes: 100, MaxBytes: rapid.Int64Range(50, 1000).Draw(rt, "most")}
		if rapid.Bool().Draw(rt, "masked") {
			o.Masks = mask.New([]string{"s3cret-value", "ab"})
		}
		alone, handed := NewWriter(s, a, o), a
		handed.Task = "handed"
		write(t, alone, Stdout, text)
		alone.Flush()
		w := NewWriter(s, handed, o)
		for from, to := 0, 0; ; from = to {
			to = rapid.IntRange(from, len(text)).Draw(rt, "to")
			write(t, w, Stdout, text[from:to])
			if to == len(text) {
				break
			}
			held, err := w.Held()
			if err = errors.Join(err, w.Suspend(context.Background())); err != nil {
				rt.Fatal(err)
			}
			next := o
			next.Held = held
			if w, err = Resume(context.Background(), s, handed, next); err != nil {
				rt.Fatal(err)
			}
		}
		w.Flush()
		want, _ := alone.Tail(Stdout)
		if got, _ := w.Tail(Stdout); got != want {
			rt.Fatalf("the tail is %q, want %q", got, want)
		}
		closeWriter(t, alone)
		closeWriter(t, w)
		if got, want := readAll(t, s, handed), readAll(t, s, a); string(got.stdout) != string(want.stdout) || got.ended != want.ended {
			rt.Fatalf("logged %q, want %q", got.stdout, want.stdout)
		}
	})
}

// byTask returns the task's own output on stderr.
func byTask(l log) string {
	var text strings.Builder
	for _, e := range l.entries {
		if e.GetStream() == Stderr && !e.GetNotice() {
			text.Write(e.GetData())
		}
	}
	return text.String()
}

// A full log stays full and says so once.
func TestResumeAFullLog(t *testing.T) {
	t.Parallel()
	s, o := storetest.Open(t, "mem://"), Options{MaxBytes: 100, FlushInterval: time.Hour}
	text := filler(500)
	w := NewWriter(s, attempt, o)
	write(t, w, Stdout, text[:200])
	for range 2 {
		w.mu.Lock()
		w.send(context.Background())
		w.mu.Unlock()
		w.cancel()
		var err error
		if w, err = Resume(t.Context(), s, attempt, o); err != nil {
			t.Fatal(err)
		}
		write(t, w, Stdout, text)
		w.Notice("more")
	}
	closeWriter(t, w)
	l := readAll(t, s, attempt)
	if string(l.stdout) != text[:100] || strings.Count(string(l.stderr), "is full") != 1 || !l.ended {
		t.Errorf("%q, %q, ended %t", l.stdout, l.stderr, l.ended)
	}
}

// If the store cannot be read, Resume returns an error.
func TestResumeWithoutTheStore(t *testing.T) {
	t.Parallel()
	if _, err := Resume(t.Context(), unreadable{storetest.Open(t, "mem://")}, attempt, Options{}); err == nil {
		t.Error("no error")
	}
}

type unreadable struct{ Store }

func (unreadable) Get(context.Context, string) ([]byte, error) { return nil, errors.New("away") }
