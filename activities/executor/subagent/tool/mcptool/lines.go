package mcptool

import (
	"bytes"
	"encoding/json"
)

// lineWriter passes on what is written line by line.
type lineWriter struct {
	// limit bounds a line, in bytes.
	limit int
	// take gets each line without its end, and the beginning of a longer one with whole unset. It may append to the line. Its
	// error is that of the write.
	take func(line []byte, whole bool) error

	line    []byte
	cutting bool // the rest of a line that was too long is dropped
}

// Write passes on the lines that data ends.
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

// flush passes on a last line without an end.
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

// isMessage reports whether a line is a message of the protocol, or several.
func isMessage(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 0 && (line[0] == '{' || line[0] == '[') && json.Valid(line)
}
