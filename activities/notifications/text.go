package notifications

import (
	"fmt"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// fact is a line of a message with a label.
type fact struct{ label, value string }

// facts returns what a message reports besides its title, its text and the failed tasks.
func facts(notice *historyv1.Notice) []fact {
	all := []fact{
		{"Workflow", notice.GetWorkflow()}, {"Run", notice.GetRun()}, {"Task", notice.GetTask()}, {"State", notice.GetState()},
		{"Reason", notice.GetReason()}, {"Submitted by", notice.GetSubmittedBy()},
	}
	var known []fact
	for _, f := range all {
		if f.value != "" {
			known = append(known, f)
		}
	}
	return known
}

// failedTitle returns a line about a failed task.
func failedTitle(task *historyv1.FailedTask) string {
	text := task.GetName() + ": " + task.GetState()
	if task.GetError() != "" {
		text += ", " + task.GetError()
	}
	return text
}

// omitted returns a line about the failed tasks that a notice leaves out, or "".
func omitted(notice *historyv1.Notice) string {
	if more := int(notice.GetFailures()) - len(notice.GetFailed()); more > 0 {
		return fmt.Sprintf("and %d more failed tasks", more)
	}
	return ""
}

// plainText returns a message as text, without its title.
func plainText(notice *historyv1.Notice, message *historyv1.NotificationMessage) string {
	var b strings.Builder
	paragraph := func(text string) {
		if text != "" {
			b.WriteString(text + "\n\n")
		}
	}
	paragraph(message.GetText())
	for _, f := range facts(notice) {
		fmt.Fprintf(&b, "%s: %s\n", f.label, f.value)
	}
	b.WriteString("\n")
	paragraph(notice.GetUrl())
	for _, task := range notice.GetFailed() {
		text := failedTitle(task)
		for _, line := range task.GetLines() {
			text += "\n    " + line
		}
		paragraph(text)
	}
	paragraph(omitted(notice))
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// cut returns a text of at most n runes; a longer one ends in "...".
func cut(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n-3]) + "..."
}

// cutFront returns the end of a text of at most n runes; a longer one begins with "...".
func cutFront(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return "..." + string(runes[len(runes)-n+3:])
}
