package logs

// maxPositionBytes is the longest position; Mark ignores longer ones.
const maxPositionBytes = 256

// Mark records where in its source the next write to stdout begins. The goroutine that writes to stdout calls it between
// two writes. A writer that resumes the log continues at the newest mark, so marks bound how much the source must repeat.
// A mark is ignored if the log already has the next write, or if a stream that begins there would mask other values.
func (w *Writer) Mark(position string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.stdout
	if s.skip > 0 || len(position) > maxPositionBytes || s.masked != nil && !s.masked.CanResume() {
		return
	}
	s.mark = position
}

// Position returns the newest mark in the log at the time when the writer resumed it, or "" if there was none. The caller
// must write stdout again from there, or from the start.
func (w *Writer) Position() string { return w.position }
