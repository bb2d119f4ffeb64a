package sessions

import (
	"errors"
	"io"
	"sync"

	"switchyard/activities/sessions/wire"
	v1 "switchyard/proto/switchyard/v1"
)

// frames writes frames to a stream. It is safe for concurrent use.
type frames struct {
	mu   sync.Mutex
	conn wire.Conn
}

func (f *frames) send(frame *v1.SessionFrame) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return wire.WriteMessage(f.conn, frame)
}

// exit sends the last frame. If err is not nil, the frame's exit code is not 0.
func (f *frames) exit(code int, signal string, err error) {
	e := &v1.SessionExit{Code: int32(code), Signal: signal}
	if err != nil {
		e.Error = lineOf(err)
		if code == 0 {
			e.Code = 1
		}
	}
	_ = f.send(&v1.SessionFrame{Frame: &v1.SessionFrame_Exit{Exit: e}}) // the client may have left
}

// stdout returns a writer that sends standard output.
func (f *frames) stdout() io.Writer {
	return output{f, func(b []byte) *v1.SessionFrame { return &v1.SessionFrame{Frame: &v1.SessionFrame_Stdout{Stdout: b}} }}
}

func (f *frames) stderr() io.Writer {
	return output{f, func(b []byte) *v1.SessionFrame { return &v1.SessionFrame{Frame: &v1.SessionFrame_Stderr{Stderr: b}} }}
}

type output struct {
	frames *frames
	frame  func([]byte) *v1.SessionFrame
}

// Write sends output in frames of at most wire.MaxChunk bytes.
func (o output) Write(p []byte) (written int, err error) {
	for written < len(p) {
		chunk := p[written:min(len(p), written+wire.MaxChunk)]
		if err := o.frames.send(o.frame(chunk)); err != nil {
			return written, err
		}
		written += len(chunk)
	}
	return written, nil
}

// archive reads an archive from frames.
type archive struct {
	conn  wire.Conn
	chunk []byte
	ended bool
}

// Read reads the next part of the archive. If the archive is incomplete, Read returns io.ErrUnexpectedEOF or another
// error, but never io.EOF.
func (a *archive) Read(p []byte) (int, error) {
	for len(a.chunk) == 0 {
		if a.ended {
			return 0, io.EOF
		}
		frame := &v1.SessionFrame{}
		if err := wire.ReadMessage(a.conn, frame); errors.Is(err, io.EOF) {
			return 0, io.ErrUnexpectedEOF
		} else if err != nil {
			return 0, err
		}
		a.chunk = frame.GetStdin()
		a.ended = frame.GetStdinEnd()
	}
	n := copy(p, a.chunk)
	a.chunk = a.chunk[n:]
	return n, nil
}
