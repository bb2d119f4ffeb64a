package sse

import (
	"switchyard/gateway/rpcerror"
)

const (
	// maxTail is the most lines of each task that a stream begins with, if it does not begin with the first.
	maxTail = 1000
	// maxTailBytes is how much of the last lines of all tasks is held.
	maxTailBytes = 16 << 20
)

// logTail keeps the last lines of each task while what has been printed so far is read.
type logTail struct {
	lines int
	bytes int
	order []string // of the tasks, by their first lines
	kept  map[string][][]byte
	// missing are the events of logs that are missing.
	missing [][]byte
}

// newLogTail returns a tail of so many lines of each task.
func newLogTail(lines int) *logTail { return &logTail{lines: lines, kept: map[string][][]byte{}} }

// add takes the event of a line of a task.
func (t *logTail) add(task string, frame []byte) error {
	if t.lines == 0 {
		return nil
	}
	kept, known := t.kept[task]
	if !known {
		t.order = append(t.order, task)
	}
	if len(kept) == t.lines {
		t.bytes -= len(kept[0])
		kept = kept[1:]
	}
	t.kept[task] = append(kept, frame)
	if t.bytes += len(frame); t.bytes > maxTailBytes {
		return rpcerror.Invalid("the last %d lines of all tasks take more than %d MiB; ask for fewer, or for one task", t.lines, maxTailBytes>>20)
	}
	return nil
}

// send sends the lines, task by task.
func (t *logTail) send(out *batch) error {
	for _, task := range t.order {
		for _, frame := range t.kept[task] {
			if err := out.add(frame); err != nil {
				return err
			}
		}
	}
	for _, frame := range t.missing {
		if err := out.add(frame); err != nil {
			return err
		}
	}
	return nil
}
