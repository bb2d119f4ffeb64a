package dag

import (
	"fmt"
	"strings"
	"unicode/utf8"

	v1 "switchyard/proto/switchyard/v1"
)

// maxErrorBytes is the most bytes of a task's error that the one-line error of a run includes, because people read that line in
// lists.
const maxErrorBytes = 200

// ended describes in a few words how task i ended.
func (g *Graph) ended(i int, rec Record) string {
	phrase := "failed"
	switch rec.State {
	case v1.TaskKilledOOM:
		phrase = "ran out of memory"
	case v1.TaskLost, v1.TaskKilled, v1.TaskRejected, v1.TaskCancelled:
		phrase = "was " + rec.State
	case v1.TaskSkipped:
		phrase = "was skipped by its condition"
		if rec.Reason == v1.ReasonWhen {
			phrase = "was skipped by its `when`"
		}
	}
	return fmt.Sprintf("task %q %s", g.nodes[i].name, phrase)
}

// OneLine returns the first line of a text, cut to 200 bytes.
func OneLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	if len(line) <= maxErrorBytes {
		return line
	}
	end := maxErrorBytes
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + "..."
}
