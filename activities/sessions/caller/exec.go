package caller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	"switchyard/activities/sessions/wire"
	v1 "switchyard/proto/switchyard/v1"
)

// Exec runs a program beside the attempt's own. It may return while a Read of c.Stdin is still blocked.
func (i inside) Exec(ctx context.Context, c executor.Command) (executor.ExitStatus, error) {
	conn, reply, err := i.open(ctx, &v1.SessionHeader{Kind: wire.KindExec, User: c.User, Exec: execOf(c)})
	if err != nil {
		return executor.ExitStatus{}, err
	}
	s := newFrames(ctx, conn)
	s.window = newWindow(int(reply.GetStdinWindow()))
	defer s.close()
	if c.Stdin != nil {
		go s.sendInput(c.Stdin)
	}
	if c.Terminal != nil && c.Terminal.Resizes != nil {
		go sendEach(s, c.Terminal.Resizes, func(size executor.WindowSize) *v1.SessionFrame {
			return &v1.SessionFrame{Frame: &v1.SessionFrame_Resize{Resize: sizeOf(size)}}
		})
	}
	if c.Signals != nil {
		go sendEach(s, c.Signals, func(signal string) *v1.SessionFrame {
			return &v1.SessionFrame{Frame: &v1.SessionFrame_Signal{Signal: signal}}
		})
	}
	exit, err := s.receive(c.Stdout, c.Stderr)
	if err != nil {
		return executor.ExitStatus{}, ended(ctx, err, "the program", reply)
	}
	status := executor.ExitStatus{Code: int(exit.GetCode()), Signal: exit.GetSignal()}
	return status, refusalOf(exit)
}

// execOf returns a command in the form that is sent to the node.
func execOf(c executor.Command) *v1.SessionExec {
	e := &v1.SessionExec{Command: c.Args, Line: c.Line, Stdin: c.Stdin != nil, Env: c.Env, Directory: c.Dir, User: c.User}
	if c.Terminal != nil {
		e.Terminal, e.TerminalType, e.Size = true, c.Terminal.Type, sizeOf(c.Terminal.Size)
	}
	return e
}

func sizeOf(s executor.WindowSize) *v1.TerminalSize {
	return &v1.TerminalSize{Columns: uint32(s.Columns), Rows: uint32(s.Rows)}
}

func refusalOf(exit *v1.SessionExit) error {
	if exit.GetError() == "" {
		return nil
	}
	return &executor.Refusal{Text: exit.GetError()}
}

// ReadTar writes a tar archive of a path to a writer.
func (i inside) ReadTar(ctx context.Context, user, path string, to io.Writer) error {
	conn, reply, err := i.open(ctx, &v1.SessionHeader{Kind: wire.KindReadTar, User: user, Path: path})
	if err != nil {
		return err
	}
	s := newFrames(ctx, conn)
	defer s.close()
	exit, err := s.receive(to, nil)
	if err != nil {
		return ended(ctx, err, "the copy", reply)
	}
	return refusalOf(exit)
}

// WriteTar sends a tar archive to be unpacked at a path. It may return while a Read of from is still blocked, if the node
// refuses the rest.
func (i inside) WriteTar(ctx context.Context, user, path string, rename bool, from io.Reader) error {
	conn, reply, err := i.open(ctx, &v1.SessionHeader{Kind: wire.KindWriteTar, User: user, Path: path, Rename: rename})
	if err != nil {
		return err
	}
	s := newFrames(ctx, conn)
	defer s.close()
	failed := make(chan error, 1)
	go s.sendArchive(from, failed)
	exit, err := s.receive(nil, nil)
	select {
	case read := <-failed:
		return read
	default:
	}
	if err != nil {
		return ended(ctx, err, "the copy", reply)
	}
	return refusalOf(exit)
}

// frames is a stream of SessionFrames.
type frames struct {
	conn wire.Conn
	stop func() bool
	done chan struct{}
	// window bounds the input in flight, so that signals do not wait behind input that the program has not read. It is nil if
	// there is no bound.
	window *window
}

// newFrames returns the frames of a stream. The end of ctx aborts the stream.
func newFrames(ctx context.Context, conn wire.Conn) *frames {
	return &frames{conn: conn, stop: context.AfterFunc(ctx, func() { wire.Abort(conn, "") }), done: make(chan struct{})}
}

// close closes the stream and ends its senders.
func (s *frames) close() {
	s.stop()
	close(s.done)
	s.window.close()
	_ = s.conn.Close()
}

// sendInput sends the standard input of a program. A read error ends the input like its regular end.
func (s *frames) sendInput(from io.Reader) {
	if _, err := s.sendAll(from); err != nil {
		return
	}
	_ = wire.WriteMessage(s.conn, &v1.SessionFrame{Frame: &v1.SessionFrame_StdinEnd{StdinEnd: true}})
}

// sendArchive sends an archive. A read error aborts the stream, so that the node does not take a partial archive for a
// complete one.
func (s *frames) sendArchive(from io.Reader, failed chan<- error) {
	read, err := s.sendAll(from)
	switch {
	case read != nil:
		failed <- read // before the stream ends because of it
		wire.Abort(s.conn, read.Error())
	case err == nil:
		_ = wire.WriteMessage(s.conn, &v1.SessionFrame{Frame: &v1.SessionFrame_StdinEnd{StdinEnd: true}})
	}
}

// sendAll sends everything from a reader. read is an error of reading, sent one of sending.
func (s *frames) sendAll(from io.Reader) (read, sent error) {
	buffer := make([]byte, wire.MaxChunk)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !s.window.take(n) {
				return nil, net.ErrClosed
			}
			if sent := wire.WriteMessage(s.conn, &v1.SessionFrame{Frame: &v1.SessionFrame_Stdin{Stdin: buffer[:n]}}); sent != nil {
				return nil, sent
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return err, nil
		}
	}
}

// sendEach sends a frame for each value of a channel until the channel is closed or the session has ended.
func sendEach[T any](s *frames, values <-chan T, frame func(T) *v1.SessionFrame) {
	for {
		select {
		case v, ok := <-values:
			if !ok || wire.WriteMessage(s.conn, frame(v)) != nil {
				return
			}
		case <-s.done:
			return
		}
	}
}

// receive writes the output from the node to stdout and stderr, which may be nil, and returns the exit frame.
func (s *frames) receive(stdout, stderr io.Writer) (*v1.SessionExit, error) {
	frame := &v1.SessionFrame{}
	for {
		proto.Reset(frame)
		if err := wire.ReadMessage(s.conn, frame); err != nil {
			return nil, err
		}
		var err error
		switch f := frame.GetFrame().(type) {
		case *v1.SessionFrame_Stdout:
			err = write(stdout, f.Stdout)
		case *v1.SessionFrame_Stderr:
			err = write(stderr, f.Stderr)
		case *v1.SessionFrame_StdinRead:
			s.window.give(int(f.StdinRead))
		case *v1.SessionFrame_Exit:
			return f.Exit, nil
		}
		if err != nil {
			wire.Abort(s.conn, "")
			return nil, err
		}
	}
}

// write writes p to w. A nil w discards it.
func write(w io.Writer, p []byte) error {
	if w == nil {
		return nil
	}
	if _, err := w.Write(p); err != nil {
		return fmt.Errorf("write the output of a session: %w", err)
	}
	return nil
}
