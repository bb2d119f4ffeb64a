package streamjson

import "bytes"

// MaxLine bounds how many bytes of a line are kept.
const MaxLine = 8 << 20

// keptBuffer bounds the capacity of a buffer that is kept for the next line.
const keptBuffer = 64 << 10

// LineWriter splits its input into lines. Only one goroutine at a time may use it.
type LineWriter struct {
	// OnLine receives a line without its end, and must not keep it. For a line longer than MaxLine, it receives the
	// start and how many bytes were cut off. Write returns its error.
	OnLine func(line []byte, cut int64) error

	part []byte
	cut  int64
}

// Write splits p into lines. After an error the rest of p is dropped.
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

// add appends to the unfinished line.
func (w *LineWriter) add(p []byte) {
	room := MaxLine - len(w.part)
	if len(p) > room {
		w.cut += int64(len(p) - room)
		p = p[:room]
	}
	w.part = append(w.part, p...)
}

// Flush passes on an unfinished line, if there is one.
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
