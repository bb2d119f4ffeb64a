package streamjson

import "bytes"

// MaxLine is the most bytes of a line that are kept.
const MaxLine = 8 << 20

// keptBuffer is the capacity of a buffer that is kept for the next line.
const keptBuffer = 64 << 10

// LineWriter splits what is written to it into lines. It is used by one goroutine at a time.
type LineWriter struct {
	// OnLine takes a line without its end, which it must not keep. Of a line that was longer than MaxLine it gets the start,
	// and how many bytes were cut off. Its error is that of Write.
	OnLine func(line []byte, cut int64) error

	part []byte
	cut  int64
}

// Write splits p. After an error the rest of p is dropped.
func (w *LineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			w.add(p)
			break
		}
		var err error
		if len(w.part) == 0 && w.cut == 0 && end <= MaxLine {
			err = w.OnLine(p[:end], 0)
		} else {
			w.add(p[:end])
			err = w.Flush()
		}
		if err != nil {
			return 0, err
		}
		p = p[end+1:]
	}
	return n, nil
}

// add appends to the line that has not ended yet.
func (w *LineWriter) add(p []byte) {
	room := MaxLine - len(w.part)
	if len(p) > room {
		w.cut += int64(len(p) - room)
		p = p[:room]
	}
	w.part = append(w.part, p...)
}

// Flush ends the line that has no end, if there is one.
func (w *LineWriter) Flush() error {
	if len(w.part) == 0 && w.cut == 0 {
		return nil
	}
	line, cut := w.part, w.cut
	w.part, w.cut = w.part[:0], 0
	if cap(w.part) > keptBuffer {
		w.part = nil
	}
	return w.OnLine(line, cut)
}
