package notification

import (
	"context"
	"fmt"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
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
// recovered is true for a completed run whose predecessor has failed.
func Plan(ctx context.Context, evaluator *condition.Evaluator, entries []*v1.Notification, event, task string, run *historyv1.RunView, recovered bool) []Decision {
	var decisions []Decision
	told := map[string]bool{}
	for _, entry := range entries {
		word := wordFor(entry, event, recovered)
		if word == "" || told[entry.GetTo()] {
			continue
		}
		view := condition.View{Run: run, Event: word, EventTask: task}
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
		decisions = append(decisions, Decision{Target: entry.GetTo(), Event: word, Title: title(word, task, run), Text: text})
	}
	return decisions
}
