package notification

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition"
)

// The maximum lengths of what a message reports, in bytes. All messages about an event travel together, in one payload of Temporal.
const (
	MaxError = 500
	maxTitle = 1000
	maxText  = 32 << 10
	// maxTexts is the length of the texts of all messages together.
	maxTexts = 160 << 10
)

// Decision is a message to a target, and the event that it is about.
type Decision struct {
	Target, Event string
	// Title states what has happened, in one line.
	Title string
	// Text is that of the entry, or "" if it has none.
	Text string
}

// Plan returns the messages about an event: at most one for each target, by the first entry that applies. An expression that cannot
// be evaluated does not keep a target from being told; the text then says so.
// run is the one of the input, with its failed tasks, and recovered is true for a completed run whose predecessor has failed.
func Plan(ctx context.Context, evaluator *condition.Evaluator, in *historyv1.NotifyInput, run *historyv1.RunView, recovered bool) []Decision {
	var decisions []Decision
	told := map[string]bool{}
	for _, entry := range in.GetNotify() {
		word := wordFor(entry, in.GetEvent(), recovered)
		if word == "" || told[entry.GetTo()] {
			continue
		}
		view := condition.View{Run: run, Event: word, EventTask: in.GetTask()}
		applies, err := evaluator.Applies(ctx, entry.GetIf(), view)
		if err == nil && !applies {
			continue
		}
		told[entry.GetTo()] = true
		text, fault := evaluator.RenderMessage(ctx, entry.GetMessage(), view)
		if fault != nil {
			text = fmt.Sprintf("(%v)", fault)
		}
		if err != nil {
			text = fmt.Sprintf("%s\n(sent because notify.if cannot be evaluated: %v)", text, err)
		}
		if lines := inputs(in); lines != "" {
			text = strings.TrimSpace(strings.TrimRight(text, "\n") + "\n\n" + lines)
		}
		decisions = append(decisions, Decision{Target: entry.GetTo(), Event: word, Title: title(word, in, run), Text: text})
	}
	for i, d := range decisions {
		decisions[i].Title, decisions[i].Text = Cut(d.Title, maxTitle), Cut(d.Text, min(maxText, maxTexts/len(decisions)))
	}
	return decisions
}

// inputs returns what the approval that an event is about lets people fill in, as lines, or "".
func inputs(in *historyv1.NotifyInput) string {
	if len(in.GetInputs()) == 0 {
		return ""
	}
	text := "Its inputs:"
	for _, name := range slices.Sorted(maps.Keys(in.GetInputs())) {
		text += "\n- " + name + ": " + definition.DescribeInput(in.GetInputs()[name])
	}
	return text
}

// Cut returns a text of at most n bytes; a longer one ends in "...".
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-3], "") + "..."
}
