package output

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	v1 "switchyard/proto/switchyard/v1"
)

// TestLogLinesAreWhole checks that each task's lines come out whole and in order, however its output is split.
func TestLogLinesAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks := map[string]string{}
		for _, task := range []string{"a", "b"} {
			tasks[task] = rapid.StringMatching(`([x-z]{0,5}\n?){0,6}`).Draw(t, task)
		}
		left := map[string]string{"a": tasks["a"], "b": tasks["b"]}
		var out strings.Builder
		p := &LogPrinter{Stdout: &out, Stderr: &out, Prefix: true}
		for left["a"]+left["b"] != "" {
			task := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "task")
			n := rapid.IntRange(0, len(left[task])).Draw(t, "bytes")
			if err := p.Print([]*v1.LogEntry{{Task: task, Stream: "stdout", Data: []byte(left[task][:n])}}); err != nil {
				t.Fatal(err)
			}
			left[task] = left[task][n:]
		}
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
		for task, text := range tasks {
			var got strings.Builder
			for line := range strings.Lines(out.String()) {
				if rest, ok := strings.CutPrefix(line, task+" | "); ok {
					got.WriteString(rest)
				}
			}
			want := text
			if want != "" && !strings.HasSuffix(want, "\n") {
				want += "\n"
			}
			if got.String() != want {
				t.Fatalf("task %s printed %q, which came out as %q", task, text, got.String())
			}
		}
	})
}

func TestLogLinesAreBounded(t *testing.T) {
	var out strings.Builder
	p := &LogPrinter{Stdout: &out, Stderr: &out, Prefix: true}
	piece := []byte(strings.Repeat("x", 1<<20))
	for range 4 {
		if err := p.Print([]*v1.LogEntry{{Task: "a", Stream: "stdout", Data: piece}}); err != nil {
			t.Fatal(err)
		}
	}
	held := 0
	for _, text := range p.partial {
		held += len(text.text)
	}
	if held > maxLogLine {
		t.Errorf("%d bytes of a line without an end are held back", held)
	}
	if n := strings.Count(out.String(), "x"); n+held != 4<<20 {
		t.Errorf("%d bytes came out, %d are held", n, held)
	}
}
