package mcptool

import (
	"bytes"
	"encoding/json"
)

// lineWriter passes its input on line by line.
type lineWriter struct {
	// limit bounds a line, in bytes.
	limit int
	// take receives each line without its end, or the beginning of a longer line with whole unset. It may append to the
	// line. Write returns its error.
	take func(line []byte, whole bool) error

	line    []byte
	cutting bool // whether the rest of a line that was too long is being dropped
}

// Write passes on the lines that end in data.
func (w *lineWriter) Write(data []byte) (int, error) {
	n := len(data)
	for len(data) > 0 {
		part, rest, ends := bytes.Cut(data, []byte{'\n'})
		data = rest
		if !w.cutting {
			w.line = append(w.line, part[:min(len(part), w.limit+1-len(w.line))]...)
			if len(w.line) > w.limit {
				w.cutting = true
				if err := w.pass(false); err != nil {
					return n, err
				}
			}
		}
		if !ends {
			break
		}
		if w.cutting {
			w.cutting = false
		} else if err := w.pass(true); err != nil {
			return n, err
		}
	}
	return n, nil
}

// flush passes on an unfinished last line.
func (w *lineWriter) flush() {
	if len(w.line) > 0 {
		_ = w.pass(true)
	}
}

func (w *lineWriter) pass(whole bool) error {
	line := w.line
	w.line = nil
	return w.take(line, whole)
}

// isMessage reports whether a line is a protocol message or a batch of messages.
func isMessage(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 0 && (line[0] == '{' || line[0] == '[') && json.Valid(line)
}
