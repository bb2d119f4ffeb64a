package podhelper

import (
	"bytes"
	"io"
	"strings"
)

// Reader is a filter for the log of a container: it passes on what the program printed, and collects the files of the
// frames. A Reader reads one stream, from the start of a line to its end, and has one caller at a time.
//
// Reader holds back whatever could become a frame: the start of a marker, the rest of its line, and an empty line,
// which the helper prints before the first frame. If the program's last line has no newline, Reader adds one.
type Reader struct {
	w      io.Writer
	marker []byte
	files  collection

	// held is the end of the input that could be the start of a frame.
	held []byte
	// isBlankHeld reports whether an empty line precedes held.
	isBlankHeld bool
	// isLineStart reports whether the next byte to pass on begins a line.
	isLineStart bool
	inFrames    bool
	// err is the error of w, or nil.
	err error
}

// NewReader returns a Reader for frames with a nonce. It passes everything else on to w. If nonce is empty, there are
// no frames.
func NewReader(nonce string, w io.Writer) *Reader {
	r := &Reader{w: w, isLineStart: true}
	if nonce != "" {
		r.marker = []byte(marker(nonce))
	}
	return r
}

// InFrames reports whether the first frame has been seen. Frames can be read only from the first one on, so another
// Reader has to start before it. The caller therefore records no log position from then on.
func (r *Reader) InFrames() bool { return r.inFrames }

// HasHeld reports whether some input is held back. A Reader that starts after it would lose it, so the caller records
// no log position until it is passed on.
func (r *Reader) HasHeld() bool { return r.isBlankHeld || len(r.held) > 0 }

// Write passes on everything but frames. It returns the error of the underlying writer.
func (r *Reader) Write(p []byte) (int, error) {
	if r.marker == nil {
		return r.w.Write(p)
	}
	rest := p
	if len(r.held) > 0 {
		rest = append(r.held, p...)
	}
	for r.err == nil {
		at := bytes.Index(rest, r.marker)
		if at < 0 {
			at = len(rest) - r.markerStart(rest)
			r.pass(rest[:at])
			rest = rest[at:]
			break
		}
		r.pass(rest[:at])
		rest = rest[at:]
		end := bytes.IndexByte(rest, '\n')
		if end < 0 && len(rest) <= len(r.marker)+maxFrame {
			break
		}
		// A container with a terminal ends its lines with CR LF.
		line := strings.TrimSuffix(string(rest[len(r.marker):max(end, len(r.marker))]), "\r")
		if end >= 0 && r.files.frame(line) {
			r.inFrames, r.isBlankHeld = true, false
			rest = rest[end+1:]
			continue
		}
		// Other text is inside the frame, or the program printed the marker.
		r.inFrames = true
		r.pass(rest[:len(r.marker)])
		rest = rest[len(r.marker):]
	}
	r.held = append(r.held[:0], rest...)
	if r.err != nil {
		return 0, r.err
	}
	return len(p), nil
}

// markerStart returns the length of the longest suffix of a text that is a prefix of the marker.
func (r *Reader) markerStart(text []byte) int {
	for n := min(len(r.marker)-1, len(text)); n > 0; n-- {
		if bytes.HasSuffix(text, r.marker[:n]) {
			return n
		}
	}
	return 0
}

// pass passes text on. It holds back an empty line at the end as long as a first frame may follow.
func (r *Reader) pass(text []byte) {
	if len(text) == 0 {
		return
	}
	isEmptyLast := bytes.HasSuffix(text, []byte("\n\n")) || string(text) == "\n" && r.isLineStart
	if r.isBlankHeld {
		r.isBlankHeld = false
		r.write([]byte("\n"))
	}
	r.isLineStart = text[len(text)-1] == '\n'
	if isEmptyLast && !r.inFrames {
		r.isBlankHeld = true
		text = text[:len(text)-1]
	}
	r.write(text)
}

// write writes to the underlying writer until that fails.
func (r *Reader) write(text []byte) {
	if r.err == nil && len(text) > 0 {
		_, r.err = r.w.Write(text)
	}
}

// Close passes on what was held back, because no frame follows. It drops the start of a truncated frame.
func (r *Reader) Close() error {
	if len(r.marker) > 0 && bytes.HasPrefix(r.held, r.marker) {
		r.inFrames, r.isBlankHeld, r.held = true, false, nil
	}
	if r.isBlankHeld {
		r.isBlankHeld = false
		r.write([]byte("\n"))
	}
	r.write(r.held)
	r.held = nil
	return r.err
}

// Files returns the complete files, after Close. The error is ErrNoList, or joins a *FileError for each of the other
// files.
func (r *Reader) Files() (map[Kind][]byte, error) { return r.files.result() }
