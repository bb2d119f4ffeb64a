package shell

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creack/pty"

	"switchyard/activities/executor"
	"switchyard/activities/executor/inside"
	"switchyard/activities/executor/shell/pipes"
)

// piped holds the pipes of a program without a terminal.
type piped struct {
	null     *os.File
	read, in *os.File // nil without standard input
	from     io.Reader
	out      *pipes.Dedicated
}

func newPiped(c executor.Command, e *Executor) (*piped, error) {
	s := &piped{null: e.null, from: c.Stdin}
	var err error
	if s.out, err = pipes.NewDedicated(c.Stdout, c.Stderr, &e.buffers); err != nil {
		return nil, err
	}
	if c.Stdin != nil {
		if s.read, s.in, err = os.Pipe(); err != nil {
			s.out.Forked()
			return nil, errors.Join(err, s.out.Finish())
		}
	}
	return s, nil
}

func (s *piped) files() [3]*os.File {
	out, errs := s.out.Files()
	if s.read == nil {
		return [3]*os.File{s.null, out, errs}
	}
	return [3]*os.File{s.read, out, errs}
}

func (s *piped) started() {
	s.out.Forked()
	if s.read != nil {
		s.read.Close()
	}
}

func (s *piped) begin() {
	s.out.Begin()
	if s.in != nil {
		go func() { // finish does not wait for it: a Read may be in progress
			_, _ = io.Copy(onlyWriter{s.in}, s.from) // the program need not read everything
			s.in.Close()
		}()
	}
}

func (s *piped) finish() error {
	if s.in != nil {
		s.in.Close()
	}
	return s.out.Finish()
}

// onlyWriter prevents io.Copy from splicing, which would hold back data until more arrives.
type onlyWriter struct{ io.Writer }

const (
	// endOfText ends the input of a program with a terminal: Ctrl-D twice, since the first one may only submit an unfinished
	// line.
	endOfText = "\x04\x04"
	// silence is how long a terminal must be silent after its program has ended, while another process holds it open, before
	// reading stops.
	silence = 250 * time.Millisecond
	// mostAfter bounds how much is read after the program has ended, in bytes; the other process printed anything beyond
	// that.
	mostAfter = 1 << 20
)

// terminal is the terminal of a program.
type terminal struct {
	master, slave *os.File
	from          io.Reader
	to            io.Writer
	copies        sync.WaitGroup
	exited        atomic.Bool
	err           error
}

func newTerminal(c executor.Command, p inside.Process) (*terminal, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, errNoTerminal(err)
	}
	t := &terminal{master: master, slave: slave, from: c.Stdin, to: c.Stdout}
	if t.to == nil {
		t.to = io.Discard
	}
	t.resize(c.Terminal.Size)
	if int(p.UID) != os.Geteuid() {
		// The user also opens its terminal by name.
		if err := slave.Chown(int(p.UID), -1); err != nil {
			t.started()
			return nil, errNoTerminal(errors.Join(err, t.finish()))
		}
	}
	return t, nil
}

// resize sets the size of the terminal. A size of zero becomes 80 by 24.
func (t *terminal) resize(size executor.WindowSize) {
	if size.Columns == 0 || size.Rows == 0 {
		size = executor.WindowSize{Columns: 80, Rows: 24}
	}
	_ = pty.Setsize(t.master, &pty.Winsize{Cols: size.Columns, Rows: size.Rows})
}

func (t *terminal) files() [3]*os.File { return [3]*os.File{t.slave, t.slave, t.slave} }

func (t *terminal) started() { t.slave.Close() }

func (t *terminal) begin() {
	t.copies.Go(t.copyOut)
	if t.from != nil {
		go func() { // finish does not wait for it: a Read may be in progress
			if _, err := io.Copy(onlyWriter{t.master}, t.from); err == nil {
				_, _ = io.WriteString(t.master, endOfText)
			}
		}()
	}
}

// copyOut forwards the output until no process has the terminal open, or the terminal falls silent after the program has
// ended.
func (t *terminal) copyOut() {
	buffer := make([]byte, 32<<10)
	for left := mostAfter; left > 0; {
		over := t.exited.Load()
		if over {
			_ = t.master.SetReadDeadline(time.Now().Add(silence))
		}
		n, err := t.master.Read(buffer)
		if n > 0 && t.err == nil {
			_, t.err = t.to.Write(buffer[:n])
		}
		if over {
			left -= n
		}
		// The deadline that finish sets may expire while the writer is slow.
		if err != nil && (over || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return // EIO means that no process has the terminal open
		}
	}
}

func (t *terminal) finish() error {
	t.exited.Store(true)
	_ = t.master.SetReadDeadline(time.Now().Add(silence))
	t.copies.Wait()
	// The kernel sends SIGHUP to processes that still have it as their controlling terminal.
	return errors.Join(t.err, t.master.Close())
}
