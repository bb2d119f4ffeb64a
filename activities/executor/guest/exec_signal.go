package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
)

// signalWait bounds the delivery of one signal.
const signalWait = 30 * time.Second

// signalNumbers maps the signals of RFC 4254, section 6.10, to their numbers, which are the same on all systems in use.
var signalNumbers = map[string]int{
	"ABRT": 6, "ALRM": 14, "FPE": 8, "HUP": 1, "ILL": 4, "INT": 2, "KILL": 9, "PIPE": 13, "QUIT": 3, "SEGV": 11, "TERM": 15,
	// Signals of Linux.
	"USR1": 10, "USR2": 12,
}

var signalName = regexp.MustCompile(`^[A-Z][A-Z0-9]*$`)

// passSignals passes signals on, in order, until over ends. Signals that arrive before the program has started wait for
// it.
func (x *execution) passSignals(over context.Context) {
	select {
	case <-over.Done():
		return
	case <-x.started:
	}
	for {
		select {
		case <-over.Done():
			return
		case name, ok := <-x.command.Signals:
			if !ok {
				return
			}
			ctx, cancel := context.WithTimeout(over, signalWait)
			x.signal(ctx, name)
			cancel()
		}
	}
}

// signal sends a signal, such as "INT" or "SIGINT", to the program and its process group. SIGHUP and SIGTERM are
// followed by SIGCONT, because a stopped process would not react to them.
func (x *execution) signal(ctx context.Context, name string) {
	name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	if !signalName.MatchString(name) || x.hasExited() || x.channel.connection.hasEnded() {
		return // after a restart of the machine, the pid may belong to another process
	}
	_, isStandard := signalNumbers[name]
	if isStandard && !errors.Is(x.channel.ask(ctx, "signal", ssh.Marshal(struct{ Name string }{name})), errDenied) {
		return
	}
	select {
	case <-x.started:
	default:
		return
	}
	line := fmt.Sprintf("kill -%[1]s -%[2]d 2>/dev/null||kill -%[1]s %[2]d", name, x.pid)
	if name == "HUP" || name == "TERM" {
		line += fmt.Sprintf(";kill -CONT -%[1]d 2>/dev/null||kill -CONT %[1]d", x.pid)
	}
	_ = x.g.runLine(ctx, line)
}

// runLine runs a line of shell and waits for its end. Its output is discarded.
func (g *Guest) runLine(ctx context.Context, line string) error {
	c, err := g.startSession(ctx, execRequest("exec /bin/sh -c '"+line+"'"))
	if err != nil {
		return err
	}
	defer c.end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ssh.DiscardRequests(c.requests)
	}()
	go func() { _, _ = io.Copy(io.Discard, c.Stderr()) }()
	go func() { _, _ = io.Copy(io.Discard, c) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// passResizes passes terminal sizes on until over ends.
func (x *execution) passResizes(over context.Context) {
	if x.command.Terminal == nil {
		return
	}
	for {
		select {
		case <-over.Done():
			return
		case size, ok := <-x.command.Terminal.Resizes:
			if !ok {
				return
			}
			_ = await(over, func() error {
				_, err := x.channel.SendRequest("window-change", false, ssh.Marshal(windowOf(size)))
				return err
			}, nil)
		}
	}
}

// window is the size of a terminal (RFC 4254, section 6.7).
type window struct{ Columns, Rows, Width, Height uint32 }

// windowOf returns the size of a terminal. An empty size becomes the common 80 by 24.
func windowOf(s executor.WindowSize) window {
	if s.Columns == 0 || s.Rows == 0 {
		return window{Columns: 80, Rows: 24}
	}
	return window{Columns: uint32(s.Columns), Rows: uint32(s.Rows)}
}

// ptyRequest returns the payload of a request for a terminal (RFC 4254, section 6.2). It leaves the modes to the
// system.
func ptyRequest(t *executor.Terminal) []byte {
	size := windowOf(t.Size)
	return ssh.Marshal(struct {
		Type                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}{t.Type, size.Columns, size.Rows, 0, 0, "\x00"})
}
