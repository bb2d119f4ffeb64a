package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// maxTail is the most output lines that are shown for a failed task.
	maxTail = 10
	// maxTailBytes bounds one such line, in bytes.
	maxTailBytes = 500
	// maxFailures is the most failed tasks that are shown individually.
	maxFailures = 10
)

// Summary describes in one line how a run ended, or its current state.
func Summary(b *Status, now time.Time, style Style) string {
	state := b.run.GetState()
	end, word := now, "for"
	if at := b.run.GetCompletedAt(); at != nil {
		end, word = at.AsTime(), "after"
	}
	line := fmt.Sprintf("run %s %s", b.run.GetId(), style.paint(state, state))
	if b.run.GetCreatedAt() != nil {
		line += fmt.Sprintf(" %s %s", word, words.Duration(end.Sub(b.run.GetCreatedAt().AsTime())))
	}
	if b.total > 0 {
		line += fmt.Sprintf(" (%s)", b.tallies(style))
	}
	return line
}

// ReportedFailures returns the tasks whose results Failures shows.
func ReportedFailures(b *Status) []string {
	var tasks []string
	for k, f := range b.failures() {
		if k < maxFailures && !slices.Contains(tasks, f.of) {
			tasks = append(tasks, f.of)
		}
	}
	return tasks
}

// Failures shows the error and the last output of each failed task. The status must hold the results of the tasks that
// ReportedFailures returns. more returns the line that explains how to see all output of a task, or "".
func Failures(b *Status, style Style, more func(task string) string) []string {
	var lines []string
	told, untold := 0, 0
	for _, f := range b.failures() {
		name, t := f.name, f.task
		if told++; told > maxFailures {
			untold++
			continue
		}
		where := ""
		if t.GetNode() != "" {
			where = fmt.Sprintf(" on %s, attempt %d", t.GetNode(), t.GetAttempt())
		}
		what, _, _ := strings.Cut(t.GetError(), "\n") // the lines below the first have been printed
		what = words.OneLine(what)
		if what == "" {
			what = t.GetReason()
		}
		lines = append(lines, fmt.Sprintf("task %s %s%s: %s", name, style.paint(t.GetState(), t.GetState()), where, what))
		printed := outputTail(t.GetResult())
		if len(printed) == 1 && strings.Contains(what, words.OneLine(printed[0])) {
			continue // the line above already shows this output
		}
		if len(printed) > 0 {
			for _, line := range printed {
				lines = append(lines, "    "+line)
			}
			if hint := more(name); hint != "" {
				lines = append(lines, "  "+hint)
			}
		}
	}
	if untold > 0 {
		lines = append(lines, fmt.Sprintf("and %d more that failed", untold))
	}
	return lines
}

// namedTask is a task or an instance with its name.
type namedTask struct {
	name string
	of   string // the task, or the task of the instance
	task *v1.Task
}

// failures returns the failed tasks, each followed by its failed instances.
func (b *Status) failures() []namedTask {
	var failed []namedTask
	for _, name := range b.order() {
		t := b.tasks[name]
		if !v1.HasTaskFailed(t) {
			continue
		}
		failed = append(failed, namedTask{name, name, t})
		for _, i := range b.failed(name) {
			failed = append(failed, namedTask{names.InstanceName(name, int(i.GetIndex())), name, v1.InstanceTask(t, i)})
		}
	}
	return failed
}

// outputTail returns the end of standard error, or if that is empty, the end of standard
// output: many a test runner says there what is wrong.
func outputTail(r *v1.TaskResult) []string {
	text := r.GetStderr()
	if strings.TrimSpace(text) == "" {
		text = r.GetStdout()
	}
	text = strings.TrimRight(text, " \t\r\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-maxTail):]
	for i, line := range lines {
		lines[i] = ansi.Truncate(words.Plain(line), maxTailBytes, "…")
	}
	return lines
}
