package runlogs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/gateway/runlogs"
	v1 "switchyard/proto/switchyard/v1"
)

// entry returns a message with output of the first attempt of a task.
func entry(task, stream, text string) *v1.StreamRunLogsResponse {
	return &v1.StreamRunLogsResponse{Entries: []*v1.LogEntry{{Task: task, Stream: stream, Data: []byte(text)}}}
}

// addAll adds messages to a page and checks that none of them fills it.
func addAll(t *testing.T, p *runlogs.Page, all ...*v1.StreamRunLogsResponse) {
	t.Helper()
	for _, m := range all {
		if err := p.Add(m); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPageKeepsStartsApart checks that a line that one start of an attempt did not end is not joined with one of the next start.
func TestPageKeepsStartsApart(t *testing.T) {
	t.Parallel()
	p := runlogs.NewPage(nil, 0)
	for claim, text := range []string{"cut", "whole\n"} {
		m := entry("a", "stdout", text)
		m.Entries[0].Claim = int32(claim)
		addAll(t, p, m)
	}
	p.Finish(false)
	if got := linesOf(p); !slices.Equal(got, []string{"a stdout whole", "a stdout cut"}) || p.Lines[0].GetClaim() != 1 {
		t.Errorf("lines %q, the first of start %d", got, p.Lines[0].GetClaim())
	}
}

// linesOf returns "<task> <stream> <text>" of the lines of a page, with "..." after partial ones.
func linesOf(p *runlogs.Page) (lines []string) {
	for _, line := range p.Lines {
		text := line.GetTask() + " " + line.GetStream() + " " + line.GetText()
		if line.GetPartial() {
			text += "..."
		}
		lines = append(lines, text)
	}
	return lines
}

func TestPageJoinsTheLinesOfEachStream(t *testing.T) {
	t.Parallel()
	for _, hasNext := range []bool{false, true} {
		p := runlogs.NewPage(nil, 0)
		addAll(t, p,
			entry("a", "stdout", "one\ntw"), entry("a", "stderr", "oops"), entry("b", "stdout", "other\n"), entry("a", "stdout", "o\n\nthree\nfo"),
			entry("a", "stderr", "!\n"), entry("b", "stdout", "\xffend"))
		p.Finish(hasNext)
		rest := ""
		if hasNext {
			rest = "..."
		}
		want := []string{
			"a stdout one", "b stdout other", "a stdout two", "a stdout ", "a stdout three", "a stderr oops!", "a stdout fo" + rest, "b stdout \uFFFDend" + rest,
		}
		if got := linesOf(p); !slices.Equal(got, want) {
			t.Errorf("with a next page %t: %q, want %q", hasNext, got, want)
		}
	}
}

func TestPageKeepsTheLastLinesOfEachTask(t *testing.T) {
	t.Parallel()
	p := runlogs.NewPage(nil, 2)
	for i := range 5 {
		addAll(t, p, entry("a", "stdout", fmt.Sprintf("%d\n", i)))
	}
	addAll(t, p, entry("b", "stdout", "only\n"), entry("a", "stdout", "last"))
	p.Finish(false)
	if got, want := linesOf(p), []string{"a stdout 4", "b stdout only", "a stdout last"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPageRefusesMoreWhenItIsFull checks that a message that does not fit changes nothing, neither lines nor positions.
func TestPageRefusesMoreWhenItIsFull(t *testing.T) {
	t.Parallel()
	p := runlogs.NewPage(nil, 0)
	line := strings.Repeat("x", 64<<10) + "\n"
	added := 0
	for ; added < 100; added++ {
		m := entry("a", "stdout", line)
		m.Position = &v1.LogPosition{Task: "a", Next: int64(added + 1)}
		err := p.Add(m)
		if errors.Is(err, runlogs.ErrPageFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if added != 16 || len(p.Lines) != added {
		t.Errorf("it took %d messages and has %d lines", added, len(p.Lines))
	}
	text, err := p.Position()
	if err != nil {
		t.Fatal(err)
	}
	at, err := runlogs.ParsePosition(text)
	if err != nil || len(at) != 1 || at[0].GetNext() != int64(added) {
		t.Errorf("the next page begins at %v, %v", at, err)
	}
	addAll(t, p, &v1.StreamRunLogsResponse{Missing: &v1.MissingLog{Task: "b"}}) // has no text
	if len(p.Missing) != 1 {
		t.Errorf("missing are %v", p.Missing)
	}
}

func TestPositionOfPageIsTheNewestOfEachLog(t *testing.T) {
	t.Parallel()
	at := func(task string, generation, attempt, claim int32, next int64) *v1.LogPosition {
		return &v1.LogPosition{Task: task, Generation: generation, Attempt: attempt, Claim: claim, Next: next}
	}
	p := runlogs.NewPage([]*v1.LogPosition{at("a", 0, 0, 1, 3), at("b", 0, 0, 1, 1)}, 0)
	for _, position := range []*v1.LogPosition{at("a", 0, 0, 1, 5), at("a", 0, 1, 2, 1), at("a", 1, 0, 3, 2), at("a", 0, 1, 2, 4)} {
		addAll(t, p, &v1.StreamRunLogsResponse{Position: position})
	}
	text, err := p.Position()
	if err != nil {
		t.Fatal(err)
	}
	got, err := runlogs.ParsePosition(text)
	want := []*v1.LogPosition{at("a", 0, 0, 1, 5), at("b", 0, 0, 1, 1), at("a", 0, 1, 2, 4), at("a", 1, 0, 3, 2)}
	if err != nil || !slices.EqualFunc(got, want, func(a, b *v1.LogPosition) bool { return proto.Equal(a, b) }) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, text := range []string{"", "no position", text[:len(text)/2]} {
		if at, err := runlogs.ParsePosition(text); err == nil {
			t.Errorf("%q is the position %v", text, at)
		}
	}
}
