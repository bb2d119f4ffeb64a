package logs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchyard/activities/store/storetest"
)

func dispatch(task string, attempt, claim int32) Attempt {
	return Attempt{Run: "ci-0k", Task: task, Attempt: attempt, Claim: claim}
}

// printed returns a line for each entry of a log, with its printer, in order.
func printed(t *testing.T, s Store, a Attempt) (lines []string) {
	t.Helper()
	for next := int64(0); ; {
		entries, after, _, err := Read(t.Context(), s, a, next)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			lines = append(lines, fmt.Sprintf("%s.%d %s", e.Task, e.Attempt, e.Data))
		}
		if after == next {
			return lines
		}
		next = after
	}
}

// The log of a batch has the output of its instances under their names. The output of one instance can be read alone.
func TestBatch(t *testing.T) {
	onEach(t, func(t *testing.T, s Store) {
		batch := func(name string, claim int32, more ...string) {
			w := NewWriter(s, dispatch(name, 5, claim), Options{TailBytes: 8})
			for i, text := range more {
				w.Begin(fmt.Sprintf("each[%d]", 2+i), int32(i), claim)
				if tail, _ := w.Tail(Stdout); tail != "" {
					t.Errorf("the tail of %d begins with %q", i, tail)
				}
				if text == "" {
					continue
				}
				write(t, w, Stdout, text)
				if tail, cut := w.Tail(Stdout); tail != text || cut {
					t.Errorf("the tail is %q, cut: %v", tail, cut)
				}
			}
			closeWriter(t, w)
		}
		batch("each[2-4]", 9, "two", "three", "four")
		batch("each[2-3]", 11, "again", "")
		batch("each[7-8]", 1, "two", "three") // a batch of other instances
		w := NewWriter(s, dispatch("each[3]", 2, 12), Options{})
		write(t, w, Stderr, "alone")
		closeWriter(t, w)
		other := NewWriter(s, dispatch("each-2[3]", 0, 1), Options{})
		write(t, other, Stderr, "another task")
		closeWriter(t, other)

		if got, want := printed(t, s, dispatch("each[2-4]", 5, 9)), []string{"each[2].0 two", "each[3].1 three", "each[4].2 four"}; !slices.Equal(got, want) {
			t.Errorf("the batch: %q, want %q", got, want)
		}
		for instance, want := range map[string][]string{
			"each[2]": {"each[2].0 two", "each[2].0 again"},
			"each[3]": {"each[3].1 three", "each[3].2 alone"},
			"each[4]": {"each[4].2 four"},
			"each[5]": nil,
		} {
			attempts, err := Attempts(t.Context(), s, "ci-0k", instance)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range attempts {
				got = append(got, printed(t, s, a)...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", instance, got, want)
			}
		}
		all, err := Instances(t.Context(), s, "ci-0k", "each")
		if want := []Attempt{dispatch("each[2-4]", 5, 9), dispatch("each[2-3]", 5, 11), dispatch("each[3]", 2, 12), dispatch("each[7-8]", 5, 1)}; err != nil ||
			!slices.EqualFunc(all, want, func(a, b Attempt) bool { return a.Task == b.Task && a.Claim == b.Claim }) {
			t.Errorf("all: %v, %v", all, err)
		}
		if own, err := Attempts(t.Context(), s, "ci-0k", "each"); err != nil || len(own) != 0 {
			t.Errorf("of the task itself: %v, %v", own, err)
		}
	})
}

func TestNotice(t *testing.T) {
	s := storetest.Open(t, "mem://")
	w := NewWriter(s, attempt, Options{})
	write(t, w, Stderr, "mine\n")
	w.Notice("something")
	if tail, _ := w.Tail(Stderr); tail != "mine\n" {
		t.Errorf("the tail is %q", tail)
	}
	closeWriter(t, w)
	w.Notice("too late")
	if l := readAll(t, s, attempt); !strings.HasSuffix(string(l.stderr), "[switchyard: something]\n") || len(l.stdout) != 0 {
		t.Errorf("the log says %q", l.stderr)
	}
}
