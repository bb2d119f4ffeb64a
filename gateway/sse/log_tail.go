package sse

import (
	"switchyard/gateway/rpcerror"
)

const (
	// maxTail bounds the number of last lines per task with which a stream may begin.
	maxTail = 1000
	// maxTailBytes bounds the memory for the last lines of all tasks.
	maxTailBytes = 16 << 20
)

// logTail keeps the last lines of each task while the existing output is read.
type logTail struct {
	lines int
	bytes int
	order []string // tasks in the order of their first lines
	kept  map[string][][]byte
	// missing holds the events for missing logs.
	missing [][]byte
}

// newLogTail returns a tail of the given number of lines per task.
func newLogTail(lines int) *logTail { return &logTail{lines: lines, kept: map[string][][]byte{}} }

// add appends the event of a line of a task, and drops the oldest one beyond the limit.
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
		return rpcerror.Invalid("the last %d lines of all tasks exceed %d MiB; request fewer lines, or a single task", t.lines, maxTailBytes>>20)
	}
	return nil
}

// send sends the kept lines, task by task.
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
