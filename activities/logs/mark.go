package logs

// maxPositionBytes is the length of a position at which a mark is left out.
const maxPositionBytes = 256

// Mark notes where in its source that begins which is written to stdout next. It is called between two writes to stdout, by the
// goroutine that writes. A writer that resumes the log continues at the newest mark, so marks say how much the source has to give
// again. A mark is left out where the log already has what is written next, or a stream that begins there would mask other values.
func (w *Writer) Mark(position string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.stdout
	if s.skip > 0 || len(position) > maxPositionBytes || s.masked != nil && !s.masked.CanResume() {
		return
	}
	s.mark = position
}

// Position returns the newest mark in the log when the writer resumed it, or "" if there was none: stdout is to be written
// again from there, or from its start.
func (w *Writer) Position() string { return w.position }
