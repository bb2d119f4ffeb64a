package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/sessions/caller"
	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/terminal"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// leaveTimeout is how long a session may take to close after the user has left it.
	leaveTimeout = 500 * time.Millisecond
	// lossTimeout bounds the request for the state of a task whose session was lost.
	lossTimeout = 5 * time.Second
	// maxInterrupts is how many times Ctrl-C is sent to a program without a terminal; the next Ctrl-C leaves the
	// session.
	maxInterrupts = 2
)

// errLeft is the cause that ends a session that a person leaves with `~.`.
var errLeft = errors.New("left")

// programSession runs a program inside a task with the streams of this process.
type programSession struct {
	sys     *system
	client  *client.Client
	target  *sessionTarget
	command executor.Command
	// interactive connects standard input to the program.
	interactive bool
	// terminal is the terminal of this process that the program takes over, or nil.
	terminal *os.File
	// started is called when the program has started, before it receives the keyboard. It may be nil.
	started func() error

	mu      sync.Mutex
	raw     *terminal.Raw // nil before the program has the keyboard
	over    bool          // set once the program must not take the keyboard any more
	signals chan string
	leave   context.CancelCauseFunc
	opened  chan struct{} // closed when the program has started
}

// run runs the program. Its error carries the exit code of the program, if that is not 0.
func (p *programSession) run(ctx context.Context) error {
	ctx, p.leave = context.WithCancelCause(ctx)
	defer p.leave(nil)
	p.signals, p.opened = make(chan string, 8), make(chan struct{})
	p.target.opened = sync.OnceFunc(p.begin)
	p.command.Signals = p.signals
	p.command.Stdout, p.command.Stderr = p.sys.rawStdout, p.sys.rawStderr
	if p.interactive {
		p.command.Stdin = p.sys.stdin
	}
	if p.terminal != nil {
		p.command.Terminal.Resizes = p.resizes(ctx)
		if p.interactive {
			p.command.Stdin = &lateReader{ready: p.opened, from: p.readTerminal}
		}
	}
	defer p.restore()

	type end struct {
		status executor.ExitStatus
		err    error
	}
	ended := make(chan end, 1)
	go func() { // ends soon after ctx, and with the process at the latest
		status, err := p.target.inside().Exec(ctx, p.command)
		ended <- end{status, err}
	}()
	var e end
	select {
	case e = <-ended:
	case <-ctx.Done():
		p.restore()
		select {
		case e = <-ended:
		case <-time.After(leaveTimeout):
			e.err = context.Cause(ctx)
		}
	}
	p.restore()
	if p.raw != nil && (isLost(e.err) || ctx.Err() != nil) {
		fmt.Fprintln(p.sys.screen) // the program may have left the cursor anywhere
	}
	if errors.Is(context.Cause(ctx), errLeft) {
		return &exit.Error{
			Code: exit.CodeLost, Err: fmt.Errorf("you have left %s; the program may still be running there", p.target),
			Hint: fmt.Sprintf("`switchyard runs exec %s` returns to the task", p.target.words()),
		}
	}
	return p.outcome(ctx, e.status, e.err)
}

// begin routes the keyboard and signals of this process to the program.
func (p *programSession) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	if p.started != nil {
		if err := p.started(); err != nil {
			p.leave(err)
			return
		}
	}
	switch {
	case p.terminal == nil || !p.interactive:
		p.sys.signals.set(p.divert())
	default:
		raw, err := terminal.MakeRaw(p.terminal)
		if err != nil {
			p.leave(fmt.Errorf("put the terminal into raw mode: %w", err))
			return
		}
		p.raw = raw
		p.sys.rawTerminal.Store(raw)
	}
	close(p.opened)
}

// restore returns the keyboard and signals to this process.
func (p *programSession) restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.sys.signals.set(nil)
	p.raw.Restore()
}

// readTerminal returns a reader of the keyboard that handles escapes.
func (p *programSession) readTerminal() io.Reader {
	return terminal.NewInput(p.terminal, func() { p.leave(errLeft) }, func() { p.print(terminal.EscapeHelp) })
}

// report prints a line next to the output of the program.
func (p *programSession) report(line string) {
	if p.command.Terminal == nil {
		fmt.Fprintln(p.sys.screen, line)
		return
	}
	p.print(line + "\n")
}

// print prints lines while the terminal may be in raw mode.
func (p *programSession) print(text string) {
	fmt.Fprint(p.sys.rawStderr, "\r\n"+strings.ReplaceAll(text, "\n", "\r\n"))
}

// resizes returns a channel of the terminal's later sizes.
func (p *programSession) resizes(ctx context.Context) <-chan executor.WindowSize {
	sizes, from := make(chan executor.WindowSize), terminal.Resizes(ctx, p.terminal, terminal.Size(p.command.Terminal.Size))
	go func() {
		for {
			select {
			case size := <-from:
				select {
				case sizes <- executor.WindowSize(size):
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return sizes
}

// divert returns a function that sends signals to a program without a terminal. The third Ctrl-C leaves a program that
// the first two did not end.
func (p *programSession) divert() func(os.Signal) bool {
	interrupts := 0
	return func(sig os.Signal) bool {
		name := ""
		switch sig {
		case os.Interrupt:
			if interrupts++; interrupts > maxInterrupts {
				return false
			}
			name = "INT"
		case syscall.SIGTERM:
			name = "TERM"
		default:
			return false
		}
		select {
		case p.signals <- name:
			return true
		default:
			return false // the queue is full: the connection is stuck
		}
	}
}

// outcome returns the error of the command.
func (p *programSession) outcome(ctx context.Context, status executor.ExitStatus, err error) error {
	if err == nil {
		if status.Code == 0 {
			return nil
		}
		return exit.Silent(status.Code)
	}
	if refused, ok := errors.AsType[*executor.Refusal](err); ok {
		return &exit.Error{Code: cmp.Or(status.Code, exit.CodeNotDone), Err: errors.New(words.OneLine(refused.Error()))}
	}
	lost, ok := errors.AsType[*caller.LostError](err)
	if ctx.Err() != nil || !ok {
		return err
	}
	return p.lost(ctx, lost.Err)
}

// lost returns the error of a session whose connection was lost, with the state of the task if the gateway knows it.
func (p *programSession) lost(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, lossTimeout)
	defer cancel()
	text, hint := "the state of the program is unknown", fmt.Sprintf("once the gateway answers, `switchyard runs exec %s` returns to the task if it is still running", p.target.words())
	if run, name := p.target.names(); name != "" {
		if _, task, _, err := readTask(ctx, p.client, run, name); err == nil {
			text = fmt.Sprintf("the task is %s", task.GetState())
			hint = fmt.Sprintf("`switchyard runs get %s` shows how it ended", p.target.words())
			if !v1.HasTaskEnded(task) {
				text = "the task is still " + task.GetState() + ", and its node sends SIGHUP to the program"
				hint = fmt.Sprintf("`switchyard runs exec %s` returns to the task", p.target.words())
			}
		}
	}
	return &exit.Error{Code: exit.CodeLost, Err: fmt.Errorf("%s: the session with %s has ended; %s", words.OneLine(err.Error()), p.target, text), Hint: hint}
}

// lateReader reads from a reader that becomes available when ready is closed.
type lateReader struct {
	ready <-chan struct{}
	from  func() io.Reader
	r     io.Reader
}

// Read blocks until the reader is available, and then reads from it.
func (l *lateReader) Read(p []byte) (int, error) {
	if l.r == nil {
		<-l.ready
		l.r = l.from()
	}
	return l.r.Read(p)
}
