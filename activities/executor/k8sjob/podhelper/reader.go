package podhelper

import (
	"bytes"
	"io"
	"strings"
)

// Reader is a filter for the log of a container: it passes on what the program has printed, and keeps the files of the frames.
// One Reader reads one stream, from the beginning of a line to its end, and has one caller at a time.
//
// What could become a frame is held back: the beginning of a marker, the rest of its line, and an empty line, which the helper
// prints before the first frame. A program whose last line has no newline gets one.
type Reader struct {
	w      io.Writer
	marker []byte
	files  collection

	// held is the end of what was written, and could be the beginning of a frame.
	held []byte
	// isBlankHeld says that an empty line comes before held.
	isBlankHeld bool
	// isLineStart says that the next byte to pass on begins a line.
	isLineStart bool
	inFrames    bool
	// err is why w takes no more, or nil.
	err error
}

// NewReader returns a Reader of frames with a nonce that passes the rest on to w. Without a nonce there are no frames.
func NewReader(nonce string, w io.Writer) *Reader {
	r := &Reader{w: w, isLineStart: true}
	if nonce != "" {
		r.marker = []byte(marker(nonce))
	}
	return r
}

// InFrames reports whether the first frame has been seen. Frames are only read from the first one on, so another Reader has to
// start before it: the caller notes no position in the log from then on.
func (r *Reader) InFrames() bool { return r.inFrames }

// HasHeld reports whether something of what was written is held back. A Reader that starts after it would lose it, so the
// caller notes no position in the log until it has been passed on.
func (r *Reader) HasHeld() bool { return r.isBlankHeld || len(r.held) > 0 }

// Write passes on what is no frame. After an error of the writer below, it returns that.
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
		// A container with a terminal ends its lines with a carriage return, too.
		line := strings.TrimSuffix(string(rest[len(r.marker):max(end, len(r.marker))]), "\r")
		if end >= 0 && r.files.frame(line) {
			r.inFrames, r.isBlankHeld = true, false
			rest = rest[end+1:]
			continue
		}
		// Text has come into the frame. The program may have printed it.
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

// markerStart returns how many bytes at the end of a text are the beginning of a marker.
func (r *Reader) markerStart(text []byte) int {
	for n := min(len(r.marker)-1, len(text)); n > 0; n-- {
		if bytes.HasSuffix(text, r.marker[:n]) {
			return n
		}
	}
	return 0
}

// pass passes text on, but for an empty line at its end as long as a first frame may come.
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

// write writes to the writer below until that has failed.
func (r *Reader) write(text []byte) {
	if r.err == nil && len(text) > 0 {
		_, r.err = r.w.Write(text)
	}
}

// Close passes on what was held back, because no frame follows, but for the beginning of a frame that was cut.
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

// Files returns the files that the frames have had in full, once the Reader is closed. The error is ErrNoList, or has a
// *FileError for each of the other files, joined.
func (r *Reader) Files() (map[Kind][]byte, error) { return r.files.result() }
