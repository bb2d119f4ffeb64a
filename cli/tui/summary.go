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
	// maxTail is how many lines of its output a failed task is shown with.
	maxTail = 10
	// maxTailBytes bounds a line of them.
	maxTailBytes = 500
	// maxFailures is how many failed tasks are shown one by one.
	maxFailures = 10
)

// Summary says in a line how a run has ended, or how it stands.
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

// Failures shows of each failed task what went wrong and the end of what it
// printed. The tasks of ReportedFailures must be in the status with their results. more returns the
// line that says how to see all that a task printed, or "".
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
		what, _, _ := strings.Cut(t.GetError(), "\n") // what is below it has been printed
		what = words.OneLine(what)
		if what == "" {
			what = t.GetReason()
		}
		lines = append(lines, fmt.Sprintf("task %s %s%s: %s", name, style.paint(t.GetState(), t.GetState()), where, what))
		printed := outputTail(t.GetResult())
		if len(printed) == 1 && strings.Contains(what, words.OneLine(printed[0])) {
			continue // it is said already
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
	of   string // task that it is, or is an instance of
	task *v1.Task
}

// failures are the tasks that failed, each followed by its instances that did.
func (b *Status) failures() []namedTask {
	var failed []namedTask
	for _, name := range b.order() {
		t := b.tasks[name]
		if !v1.HasTaskFailed(t) {
			continue
		}
		failed = append(failed, namedTask{name, name, t})
		for _, i := range b.failed(name) {
			failed = append(failed, namedTask{names.InstanceName(name, int(i.GetIndex())), name, words.InstanceTask(t, i)})
		}
	}
	return failed
}

// outputTail is the end of standard error or, where that is empty, of standard
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
