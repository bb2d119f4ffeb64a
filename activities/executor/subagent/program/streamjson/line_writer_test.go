package streamjson

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	v1 "switchyard/proto/switchyard/v1"
)

// split writes a text in pieces and returns its lines.
func split(t interface{ Fatal(...any) }, pieces ...string) []string {
	var lines []string
	w := &LineWriter{OnLine: func(line []byte, cut int64) error {
		if cut > 0 {
			lines = append(lines, fmt.Sprintf("%d bytes and %d", len(line), cut))
		} else {
			lines = append(lines, string(line))
		}
		return nil
	}}
	for _, p := range pieces {
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestLinesDoNotDependOnHowInputIsSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab\n]{0,40}`).Draw(t, "text")
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		want := strings.Split(text, "\n")
		if last := len(want) - 1; want[last] == "" {
			want = want[:last]
		}
		if got := split(t, pieces...); !slices.Equal(got, want) {
			t.Fatalf("lines %q, want %q", got, want)
		}
	})
}

func TestALineOfAnyLengthIsBounded(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for name, test := range map[string]struct {
		pieces []string
		want   []string
	}{
		"as long as it may be": {[]string{long, "\n", "next\n"}, []string{long, "next"}},
		"a byte too long":      {[]string{long, "y\nnext"}, []string{fmt.Sprintf("%d bytes and 1", MaxLine), "next"}},
		"in one piece":         {[]string{long + long + "\nnext"}, []string{fmt.Sprintf("%d bytes and %d", MaxLine, MaxLine), "next"}},
		"without an end":       {[]string{long, long}, []string{fmt.Sprintf("%d bytes and %d", MaxLine, MaxLine)}},
	} {
		if got := split(t, test.pieces...); !slices.Equal(got, test.want) {
			t.Errorf("%s: %d lines, want %d", name, len(got), len(test.want))
		}
	}
}

func TestWriteReturnsTheErrorOfOnLine(t *testing.T) {
	w := &LineWriter{OnLine: func([]byte, int64) error { return iotest.ErrTimeout }}
	if _, err := w.Write([]byte("a\nb\n")); err != iotest.ErrTimeout {
		t.Errorf("error %v", err)
	}
}

// FuzzTranscript checks that any output of a program results in figures that can be stored.
func FuzzTranscript(f *testing.F) {
	f.Add([]byte(`{"type":"system","subtype":"init","session_id":"s"}` + "\n" + `{"type":"assistant","message":{"id":"1","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}],"usage":{"input_tokens":-1}}}`))
	f.Add([]byte(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[{"type":"text","text":"x"}]}]}}` + "\n" + `{"type":"result","result":7,"usage":[],"structured_output":{"a":1}}`))
	f.Add([]byte("{\"type\":\"assistant\",\"message\":{\"content\":\"\xff\"}}\n{}\nnull"))
	f.Fuzz(func(t *testing.T, text []byte) {
		now := time.Unix(1, 0)
		tr := NewTranscript(func() time.Time { return now })
		for line := range bytes.SplitSeq(text, []byte("\n")) {
			tr.Add(line, 0)
			now = now.Add(time.Second)
		}
		u := tr.Usage()
		if u.Turns < 0 || u.InputTokens < 0 || u.OutputTokens < 0 || u.CostUsd < 0 {
			t.Errorf("usage %+v", u)
		}
		if tr.Session != "" && !v1.IsSessionID(tr.Session) {
			t.Errorf("session %q", tr.Session)
		}
		if tr.Result != nil {
			_, _ = tr.Failure(), tr.Output()
		}
		for _, e := range tr.Events() {
			if e.TookMs < 0 || !bytes.Equal([]byte(e.Tool), bytes.ToValidUTF8([]byte(e.Tool), nil)) {
				t.Errorf("event %+v", e)
			}
		}
	})
}
