package sessions

import (
	"context"
	"errors"
	"math"
	"sync"

	"switchyard/activities/executor"
	"switchyard/activities/sessions/wire"
	v1 "switchyard/proto/switchyard/v1"
)

// errLeft is the cause that ends a program whose client has closed its side.
var errLeft = errors.New("the client has left the session")

// exec runs a program and forwards its input, output, signals and exit status.
func (s *session) exec(ctx context.Context) {
	e := s.header.GetExec()
	reply := &v1.SessionReply{}
	if e.GetStdin() {
		reply.StdinWindow = maxInput
	}
	if s.reply(reply) != nil {
		return
	}
	out := &frames{conn: s.conn}
	keyboard := newKeyboard()
	c := executor.Command{
		Args: e.GetCommand(), Line: e.GetLine(), Env: e.GetEnv(), Dir: e.GetDirectory(), User: e.GetUser(),
		Stdout: out.stdout(), Stderr: out.stderr(), Signals: keyboard.signals,
	}
	if e.GetStdin() {
		c.Stdin = &input{buffer: keyboard.stdin, out: out}
	}
	if e.GetTerminal() {
		c.Terminal = &executor.Terminal{Type: e.GetTerminalType(), Size: windowSize(e.GetSize()), Resizes: keyboard.resizes}
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		keyboard.read(s.conn, e.GetStdin())
		s.cancel(errLeft) // no effect if the program has already ended
	})
	status, err := s.in.Exec(ctx, c)
	// Nothing reads what the client still sends.
	keyboard.close()
	out.exit(status.Code, status.Signal, err)
	_ = s.conn.Close()
	reading.Wait()
}

func windowSize(size *v1.TerminalSize) executor.WindowSize {
	clamp := func(n uint32) uint16 { return uint16(min(n, math.MaxUint16)) }
	return executor.WindowSize{Columns: clamp(size.GetColumns()), Rows: clamp(size.GetRows())}
}

// keyboard receives what the client of a program sends.
type keyboard struct {
	stdin   *buffer
	signals chan string
	resizes chan executor.WindowSize
	closed  chan struct{}
}

func newKeyboard() *keyboard {
	return &keyboard{stdin: newBuffer(), signals: make(chan string), resizes: make(chan executor.WindowSize), closed: make(chan struct{})}
}

// read handles frames until the client closes its side.
func (k *keyboard) read(conn wire.Conn, stdin bool) {
	for {
		frame := &v1.SessionFrame{}
		if wire.ReadMessage(conn, frame) != nil {
			return
		}
		switch f := frame.GetFrame().(type) {
		case *v1.SessionFrame_Stdin:
			if stdin {
				k.stdin.add(f.Stdin)
			}
		case *v1.SessionFrame_StdinEnd:
			k.stdin.end()
		case *v1.SessionFrame_Signal:
			pass(k, k.signals, f.Signal)
		case *v1.SessionFrame_Resize:
			pass(k, k.resizes, windowSize(f.Resize))
		}
	}
}

// pass hands a value to the program, or drops it if the program has ended.
func pass[T any](k *keyboard, to chan T, value T) {
	select {
	case to <- value:
	case <-k.closed:
	}
}

// close marks the program as ended and unblocks read.
func (k *keyboard) close() {
	close(k.closed)
	k.stdin.close()
}
