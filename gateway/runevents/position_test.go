package runevents

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"switchyard/gateway/paging"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// TestPositionKnowsWhatHasBeenRead checks that a position covers all earlier positions, is past exactly the events that
// it was advanced over, and survives the conversion to text.
func TestPositionKnowsWhatHasBeenRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at, next := Position{}, map[string]int64{}
		generation := int32(0)
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			if rapid.IntRange(0, 9).Draw(t, "retry") == 0 {
				generation++
				clear(next)
			}
			part := rapid.SampledFrom([]string{"", "each[0]", "each[500]"}).Draw(t, "part")
			e := &v1.Event{Id: names.EventID(generation, part, next[part])}
			if at.IsPast(e) {
				t.Fatalf("%s is past before it was read", e.GetId())
			}
			before := at
			at = at.After(e)
			next[part]++
			if !at.IsPast(e) || !at.Covers(before) || before.Covers(at) {
				t.Fatalf("after %s the position is %+v, before it %+v", e.GetId(), at, before)
			}
			again, err := ParsePosition(at.Text(e))
			if err != nil || !again.Covers(at) || !at.Covers(again) {
				t.Fatalf("%+v became %+v, %v", at, again, err)
			}
			for part, n := range next {
				if at.IsPast(&v1.Event{Id: names.EventID(generation, part, n)}) {
					t.Fatalf("%+v is past event %d of %q", at, n, part)
				}
			}
		}
	})
}

func FuzzPosition(f *testing.F) {
	f.Add("0-1")
	f.Add("0-each[500]-1~eyJyIjozfQ")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePosition(text)
		if err == nil && (p.generation < 0 || p.run < 0) {
			t.Errorf("%q is %+v", text, p)
		}
	})
}

// TestSinceSelectsAStartWithWhatFollowsIt checks that a start that the run learned of at the end of the attempt is
// selected with that end, even if an agent has taken turns in between.
func TestSinceSelectsAStartWithWhatFollowsIt(t *testing.T) {
	t.Parallel()
	s := NewSince(time.Unix(10, 0))
	var got []string
	for k, e := range []struct {
		at    int64
		event string
	}{{1, "assigned"}, {2, "started"}, {3, "completed"}, {4, "started"}, {5, "turn"}, {6, "tool_call"}, {12, "completed"}, {5, "started"}, {6, "turn"}, {13, "completed"}} {
		for _, selected := range s.Select(&v1.Event{Id: names.EventID(0, "", int64(k)), At: &timestamppb.Timestamp{Seconds: e.at}, Event: e.event}) {
			got = append(got, selected.GetId())
		}
	}
	if strings.Join(got, " ") != "0-3 0-6 0-7 0-8 0-9" {
		t.Errorf("selected are %v", got)
	}
}

func FuzzEventTokens(f *testing.F) {
	const l = paging.List("events")
	f.Add("")
	f.Add(encodeEvent(l, "run-1", eventPlace{Part: 1}))
	f.Add(encodeRunEvent(l, runPlace{run: "run-1", position: paging.Position{Start: time.Unix(1, 2).UTC(), RunID: "x"}, at: &eventPlace{Part: 1}}))
	f.Fuzz(func(t *testing.T, token string) {
		if p, err := decodeRunEvent(l, token); err == nil && token != "" {
			if again, err := decodeRunEvent(l, encodeRunEvent(l, *p)); err != nil || encodeRunEvent(l, *again) != encodeRunEvent(l, *p) {
				t.Errorf("%v became %v, %v", p, again, err)
			}
		}
	})
}
