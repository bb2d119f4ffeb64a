package logs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"switchyard/activities/secrets/mask"
	"switchyard/activities/store/storetest"
	v1 "switchyard/proto/switchyard/v1"
)

// writeMarked writes text from a byte offset on in pieces. It marks a piece with its offset if isMarked says so.
func writeMarked(t testing.TB, w *Writer, text string, from, size int, isMarked func(at int) bool) {
	t.Helper()
	for ; from < len(text); from += size {
		if isMarked(from) {
			w.Mark(strconv.Itoa(from))
		}
		write(t, w, Stdout, text[from:min(from+size, len(text))])
	}
}

// A writer that continues at the newest mark of a log adds what is missing and nothing twice, wherever the previous
// writer ended. Its tail is that of the whole output.
func TestLogContinuesAtItsNewestMark(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := storetest.Open(t, "mem://")
		o := Options{ChunkBytes: 1 << 10, TailBytes: 100}
		text := filler(rapid.IntRange(1, 9000).Draw(rt, "length"))
		want := text
		switch rapid.IntRange(0, 2).Draw(rt, "masks") {
		case 1:
			o.Masks = mask.New([]string{"line q\nline r\n", "e b\nlin"})
			want = o.Masks.Text(text)
		case 2:
			o.Masks = mask.New([]string{"a\nl"})
			want = o.Masks.Text(text)
		}
		w := NewWriter(s, attempt, o)
		for life := range rapid.IntRange(1, 4).Draw(rt, "lives") {
			if life > 0 {
				var err error
				if w, err = Resume(t.Context(), s, attempt, o); err != nil {
					rt.Fatal(err)
				}
			}
			from, _ := strconv.Atoi(w.Position())
			every, size := rapid.IntRange(1, 2000).Draw(rt, "every"), rapid.IntRange(1, 700).Draw(rt, "size")
			end := rapid.IntRange(from, len(text)).Draw(rt, "end")
			newest := from
			writeMarked(t, w, text[:end], from, size, func(at int) bool {
				if at-newest < every {
					return false
				}
				newest = at
				return true
			})
			if rapid.Bool().Draw(rt, "suspended") {
				if err := w.Suspend(t.Context()); err != nil || w.Close(t.Context()) != nil {
					rt.Fatal(err)
				}
			} else {
				kill(w)
			}
		}
		if l := readAll(t, s, attempt); l.ended || !strings.HasPrefix(want, string(l.stdout)) {
			rt.Fatalf("the log has %q, ended %t, of %q", l.stdout, l.ended, want)
		}
		w, err := Resume(t.Context(), s, attempt, o)
		if err != nil {
			rt.Fatal(err)
		}
		from, _ := strconv.Atoi(w.Position())
		writeMarked(t, w, text, from, 100, func(int) bool { return false })
		closeWriter(t, w)
		l := readAll(t, s, attempt)
		if string(l.stdout) != want || !l.ended {
			rt.Fatalf("the log has %q, ended %t, want %q", l.stdout, l.ended, want)
		}
		if tail, isCut := w.Tail(Stdout); tail != want[max(0, len(want)-100):] || isCut != (len(want) > 100) {
			rt.Fatalf("the tail is %q, cut %t", tail, isCut)
		}
		if slices.ContainsFunc(l.entries, func(e *v1.LogEntry) bool { return e.GetPosition() != "" }) {
			rt.Fatal("a reader sees a position")
		}
	})
}

func TestMarkedOutputBeginsAnEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, "mem://")
		w := NewWriter(s, attempt, Options{})
		w.Mark(strings.Repeat("x", maxPositionBytes+1))
		write(t, w, Stdout, "a")
		w.Mark("1")
		write(t, w, Stdout, "b")
		write(t, w, Stdout, "c")
		w.Mark("2")
		w.Mark("3")
		write(t, w, Stderr, "e")
		write(t, w, Stdout, "d")
		closeWriter(t, w)
		entries, _, _, err := read(t.Context(), s, attempt, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.GetPosition()+e.GetStream()+" "+string(e.GetData()))
		}
		if want := []string{"stdout a", "1stdout bc", "stderr e", "3stdout d"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// A mark for output that the log already has is ignored.
func TestMarksOfWhatTheLogHasAreLeftOut(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	w := NewWriter(s, attempt, Options{})
	w.Mark("first")
	write(t, w, Stdout, "abc")
	if err := w.Suspend(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"ab", "abcd"} {
		var err error
		if w, err = Resume(t.Context(), s, attempt, Options{}); err != nil || w.Position() != "first" {
			t.Fatalf("resumed at %q, %v", w.Position(), err)
		}
		w.Mark("again")
		write(t, w, Stdout, text)
		if err := w.Suspend(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if l := readAll(t, s, attempt); string(l.stdout) != "abcd" {
		t.Errorf("the log is %q", l.stdout)
	}
}

// A writer that is suspended does not store output that may be the beginning of a secret.
func TestSuspendLeavesWhatMasksHoldBack(t *testing.T) {
	t.Parallel()
	s, o := storetest.Open(t, "mem://"), Options{Masks: mask.New([]string{secret})}
	w := NewWriter(s, attempt, o)
	w.Mark("0")
	write(t, w, Stdout, "the "+secret[:9])
	w.Mark("13")
	write(t, w, Stdout, secret[9:12])
	if err := w.Suspend(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, err := Resume(t.Context(), s, attempt, o)
	if err != nil || w.Position() != "0" {
		t.Fatalf("resumed at %q, %v", w.Position(), err)
	}
	write(t, w, Stdout, "the "+secret+"\n")
	closeWriter(t, w)
	if l := readAll(t, s, attempt); string(l.stdout) != "the ***\n" {
		t.Errorf("the log is %q", l.stdout)
	}
}

func TestSuspendOfAnEmptyLogStoresNothing(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	if err := NewWriter(s, attempt, Options{}).Suspend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := readAll(t, s, attempt); l.chunks != 0 {
		t.Errorf("%d chunks", l.chunks)
	}
}

func TestDispatchesOfAnAttemptShareTheLogThatIsThere(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	for _, a := range []Attempt{
		{Run: "ci-0k", Task: "job", Attempt: 0, Claim: 1},
		{Run: "ci-0k", Task: "job", Attempt: 1, Claim: 3},
		{Run: "ci-0k", Task: "job", Generation: 1, Attempt: 0, Claim: 8},
	} {
		w := NewWriter(s, a, Options{})
		write(t, w, Stdout, fmt.Sprint(a.Claim))
		closeWriter(t, w)
	}
	for _, test := range []struct{ generation, attempt, claim, want int32 }{
		{0, 0, 2, 1}, {0, 0, 1, 1}, {0, 1, 4, 3}, {0, 2, 5, 5}, {1, 0, 7, 7}, {1, 0, 9, 8},
	} {
		a := Attempt{Run: "ci-0k", Task: "job", Generation: test.generation, Attempt: test.attempt, Claim: test.claim}
		got, err := Shared(context.Background(), s, a)
		if a.Claim = test.want; err != nil || got != a {
			t.Errorf("%v: %v, %v", test, got, err)
		}
	}
}
