package podlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// copied is the output of a Follow.
type copied struct {
	text    strings.Builder
	marks   []mark
	trouble []string
	err     error
}

// mark is a position and the length of the output when it was marked.
type mark struct {
	position string
	at       int
}

// follow follows the log of a server whose container ends at a time after the start, and returns the output.
func follow(ctx context.Context, t testing.TB, s *server, ended time.Duration, position string) *copied {
	t.Helper()
	c := &copied{}
	done := make(chan struct{})
	timer := time.AfterFunc(max(0, time.Until(s.start.Add(ended))), func() { close(done) })
	defer timer.Stop()
	o := Options{
		Position: position, Ended: done,
		Write: func(p []byte) error { c.text.Write(p); return nil },
		Mark:  func(position string) { c.marks = append(c.marks, mark{position, c.text.Len()}) },
		Trouble: func(err error) {
			if err != nil {
				c.trouble = append(c.trouble, err.Error())
			}
		},
	}
	c.err = followInMemory(ctx, t, s, o)
	return c
}

var base = time.Date(2026, 11, 26, 5, 17, 9, 990_000_000, time.UTC)

// drawMessages draws a log with equal timestamps, split lines, empty lines, and timestamps slightly out of order.
func drawMessages(t *rapid.T) []message {
	var messages []message
	at, after := base, time.Duration(0)
	for i := range rapid.IntRange(0, 40).Draw(t, "messages") {
		at = at.Add(rapid.SampledFrom([]time.Duration{0, 0, 1, 1000, 300 * time.Millisecond, 1500 * time.Millisecond}).Draw(t, "step"))
		after += rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, time.Second, 100 * time.Second}).Draw(t, "pause")
		m := message{time: at.Add(rapid.SampledFrom([]time.Duration{0, 0, 0, 5 * time.Millisecond, 900 * time.Millisecond}).Draw(t, "jitter")), after: after}
		if last := len(messages) - 1; last >= 0 && !strings.HasSuffix(messages[last].text, "\n") && m.time.Before(messages[last].time) {
			m.time = messages[last].time // the parts of a line are in order
		}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			m.text = "\n"
		case 1:
			m.text = fmt.Sprintf("part %d,", i)
		case 2:
			m.text = fmt.Sprintf("2026-11-26T05:17:10Z itself %d\n", i)
		case 3:
			m.text = "same\n"
		default:
			m.text = fmt.Sprintf("line %d\n", i)
		}
		messages = append(messages, m)
	}
	return messages
}

func drawFaults(t *rapid.T) []fault {
	faults := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) fault {
		return fault{
			status: rapid.SampledFrom([]int{0, 0, 0, 0, 400, 404, 500, 503}).Draw(t, "status"),
			cut:    rapid.IntRange(0, 400).Draw(t, "cut"),
			stall:  rapid.Bool().Draw(t, "stall"), isClean: rapid.Bool().Draw(t, "clean"),
		}
	}), 0, 12).Draw(t, "faults")
	for i := range faults {
		if i%2 == 1 && faults[i].status < 500 {
			faults[i].status = 0 // a container that is refused repeatedly has no log
		}
	}
	return faults
}

// The log is copied once, wherever streams are cut, stall or are refused, and resumes completely from each mark.
func TestLogIsCopiedOnceDespiteBrokenStreams(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		messages, faults, more := drawMessages(rt), drawFaults(rt), drawFaults(rt)
		if len(messages) > 0 {
			messages[len(messages)-1].text = rapid.SampledFrom([]string{"end\n", "end"}).Draw(rt, "end")
		}
		from := rapid.IntRange(0, 1000).Draw(rt, "mark")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			s := &server{messages: messages, start: time.Now(), faults: faults, uid: "u-1"}
			ended := time.Second
			if len(messages) > 0 {
				ended += messages[len(messages)-1].after
			}
			c := follow(t.Context(), t, s, ended, "")
			if c.err != nil || c.text.String() != s.text() {
				wrong = fmt.Sprintf("%q, %v, want %q", c.text.String(), c.err, s.text())
				return
			}
			if len(c.marks) == 0 {
				return
			}
			m := c.marks[from%len(c.marks)]
			again := &server{messages: messages, start: s.start, faults: more, uid: "u-1"}
			c = follow(t.Context(), t, again, ended, m.position)
			if c.err != nil || c.text.String() != s.text()[m.at:] {
				wrong = fmt.Sprintf("from %q: %q, %v, want %q", m.position, c.text.String(), c.err, s.text()[m.at:])
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// An API server that loses the node ends a stream as if it were complete.
func TestPrematureEndOfLogIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{messages: lines(9, time.Second), start: time.Now(), uid: "u-1"}
		s.faults = []fault{{cut: 0, isClean: true, isLast: true}}
		if c := follow(t.Context(), t, s, 0, ""); c.err != nil || c.text.String() != s.text() {
			t.Errorf("%q, %v", c.text.String(), c.err)
		}
	})
}

// The API server is unavailable at first, and once more later.
func TestTroubleIsReportedUntilTheServerIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := fault{status: 503, text: "overloaded"}
		s := &server{messages: lines(1000, time.Millisecond), start: time.Now(), uid: "u-1", faults: []fault{down, {cut: 20_000}, down, {cut: 30_000}}}
		ended := make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(ended) })
		var text strings.Builder
		var trouble []bool
		err := followInMemory(t.Context(), t, s, Options{
			Ended: ended, Trouble: func(err error) { trouble = append(trouble, err != nil) },
			Write: func(p []byte) error { text.Write(p); return nil },
		})
		if err != nil || text.String() != s.text() || len(trouble) < 2 || !trouble[0] || trouble[len(trouble)-1] {
			t.Errorf("%d of %d bytes, %v; there was trouble: %v", text.Len(), len(s.text()), err, trouble)
		}
	})
}

// lines returns count lines that are in the log from the start, with timestamps a step apart.
func lines(count int, step time.Duration) []message {
	var messages []message
	for i := range count {
		messages = append(messages, message{time: base.Add(time.Duration(i) * step), text: fmt.Sprintf("line %d\n", i)})
	}
	return messages
}

func TestLogIsGoneWithItsPod(t *testing.T) {
	for _, uid := range []string{"", "another"} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{messages: lines(9, time.Second), start: time.Now(), uid: "u-1", faults: []fault{{cut: 100}}}
			time.AfterFunc(50*time.Millisecond, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.uid = uid
			})
			began := time.Now()
			c := follow(t.Context(), t, s, time.Minute, "")
			if !errors.Is(c.err, ErrGone) || !strings.HasPrefix(s.text(), c.text.String()) || c.text.Len() == 0 {
				t.Errorf("%q, %v", c.text.String(), c.err)
			}
			if took := time.Since(began); took < time.Minute || took > time.Minute+time.Second {
				t.Errorf("it took %v", took)
			}
			if s.count() > 30 {
				t.Errorf("%d streams", s.count())
			}
		})
	}
}

func TestContainerThatHasNeverStartedHasNoLog(t *testing.T) {
	refusals := func(text string) []fault {
		var faults []fault
		for range 1000 {
			faults = append(faults, fault{status: 400, text: text})
		}
		return faults
	}
	for text, want := range map[string]error{
		`container "main" in pod "build-x7" is waiting to start: ContainerCreating`: nil,
		`container "main" in pod "build-x7" is terminated`:                          nil,
		`unable to retrieve container logs for containerd://c0ffee`:                 ErrGone,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{start: time.Now(), uid: "u-1", faults: refusals(text)}
			c := follow(t.Context(), t, s, time.Minute, "")
			if !errors.Is(c.err, want) || c.text.Len() > 0 || len(c.trouble) == 0 || !strings.Contains(c.trouble[0], text) {
				t.Errorf("%s: %q, %v, %q", text, c.text.String(), c.err, c.trouble)
			}
		})
	}
}

func TestLogBeginsWhenItsContainerDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{messages: lines(3, 0), start: time.Now(), uid: "u-1"}
		for range 10 {
			s.faults = append(s.faults, fault{status: 400, text: `container "main" in pod "build-x7" is waiting to start: ContainerCreating`})
		}
		c := follow(t.Context(), t, s, time.Hour, "")
		if c.err != nil || c.text.String() != s.text() {
			t.Errorf("%q, %v", c.text.String(), c.err)
		}
	})
}

// A quiet program costs a short stream once a minute.
func TestQuietLogIsReadAgainNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{messages: lines(100, time.Second), start: time.Now(), uid: "u-1"}
		s.messages = append(s.messages, message{time: base.Add(time.Hour), text: "the end\n", after: time.Hour})
		c := follow(t.Context(), t, s, time.Hour+time.Second, "")
		if c.err != nil || c.text.String() != s.text() || len(c.trouble) > 0 {
			t.Errorf("%q, %v, trouble %q", c.text.String(), c.err, c.trouble)
		}
		if n := s.count(); n < 55 || n > 65 {
			t.Errorf("%d streams in an hour", n)
		}
		for _, q := range s.streams[1:] {
			if q.Get("sinceTime") == "" || q.Get("timestamps") != "true" {
				t.Errorf("a stream is asked for with %v", q)
			}
		}
	})
}

func TestWholeLogIsReadOnceMoreWhenTheEndOfItsContainerIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{uid: "u-1", messages: lines(3, time.Millisecond), start: time.Now()}
		// The status of a container shows its end after a delay.
		c := follow(t.Context(), t, s, 1500*time.Millisecond, "")
		if took := time.Since(s.start); c.err != nil || c.text.String() != s.text() || took != 1500*time.Millisecond {
			t.Errorf("%q after %v, %v", c.text.String(), took, c.err)
		}
		if got := s.count(); got != 2 {
			t.Errorf("%d streams, want 2", got)
		}
	})
}

func TestRotationLosesOnlyWhatIsGone(t *testing.T) {
	const cut = 2*38 + 31 + 5 // within line 2, after its first 5 bytes
	for _, test := range []struct {
		rotated int
		want    func(text string) string
	}{
		{0, func(text string) string { return text }},
		{2, func(text string) string { return text }},
		{5, func(text string) string { return text[:2*7+5] + text[5*7:] }},
		{9, func(text string) string { return text[:2*7+5] }},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{messages: lines(9, time.Second), start: time.Now(), uid: "u-1", rotated: test.rotated, rotatedAfter: time.Millisecond}
			s.faults = []fault{{cut: cut}}
			c := follow(t.Context(), t, s, time.Minute, "")
			if want := test.want(s.text()); c.err != nil || c.text.String() != want {
				t.Errorf("%d rotated: %q, %v, want %q", test.rotated, c.text.String(), c.err, want)
			}
		})
	}
}

func TestSplitLineIsJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("0123456789abcdef", 1<<10)
		s := &server{start: time.Now(), uid: "u-1"}
		for i := range 20 {
			s.messages = append(s.messages, message{time: base.Add(time.Duration(i) * 100 * time.Millisecond), text: long + fmt.Sprint(i)})
		}
		s.messages = append(s.messages, message{time: base.Add(3 * time.Second), text: "end\n"})
		for cut := range 8 {
			s.faults = append(s.faults, fault{cut: 40_000 * (cut + 1)})
		}
		c := follow(t.Context(), t, s, time.Minute, "")
		if c.err != nil || c.text.String() != s.text() {
			t.Errorf("%d of %d bytes, %v", c.text.Len(), len(s.text()), c.err)
		}
	})
}

// The kubelet writes some errors in place of the log.
func TestTextWithoutTimeIsKeptOnce(t *testing.T) {
	const text = "failed to create fsnotify watcher: too many open files\n"
	synctest.Test(t, func(t *testing.T) {
		s := &server{messages: lines(3, 0), start: time.Now(), uid: "u-1"}
		for range 5 {
			s.faults = append(s.faults, fault{cut: len(text), isClean: true, text: text})
		}
		c := follow(t.Context(), t, s, time.Minute, "")
		if c.err != nil || c.text.String() != text+s.text() {
			t.Errorf("%q, %v", c.text.String(), c.err)
		}
	})
}

// The clock of the node is set back by an hour.
func TestLinesAfterAClockIsSetBackAreCopiedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{start: time.Now(), uid: "u-1", messages: lines(10, time.Second)}
		for i := range 10 {
			s.messages = append(s.messages, message{time: base.Add(time.Duration(i-3600) * time.Second), text: fmt.Sprintf("back %d\n", i)})
		}
		for cut := range 9 {
			s.faults = append(s.faults, fault{cut: 430 + 20*cut})
		}
		c := follow(t.Context(), t, s, time.Minute, "")
		if c.err != nil || c.text.String() != s.text() {
			t.Errorf("%q, %v", c.text.String(), c.err)
		}
	})
}

func TestFollowEndsWithItsContextAndItsWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{messages: lines(3, 0), start: time.Now(), uid: "u-1"}
		s.messages = append(s.messages, message{time: base, after: time.Hour})
		why := errors.New("let go")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(why) })
		if c := follow(ctx, t, s, 2*time.Hour, ""); !errors.Is(c.err, why) || c.text.String() != s.text() {
			t.Errorf("%q, %v", c.text.String(), c.err)
		}
		err := followInMemory(t.Context(), t, s, Options{Write: func([]byte) error { return why }})
		if !errors.Is(err, why) {
			t.Errorf("%v", err)
		}
		if err := Follow(t.Context(), nil, pod, Options{Position: "yesterday 1"}); err == nil {
			t.Error("no error for a position that is none")
		}
	})
}
