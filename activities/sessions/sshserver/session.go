package sshserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
)

const (
	// codeNotRun is the exit code for a program that could not be started, codeNoFiles that of a failed SFTP session.
	codeNotRun, codeNoFiles = 255, 1
	// maxSignals is the number of signals that may wait for a program.
	maxSignals = 16
)

// session is a channel of type "session".
type session struct {
	conn    *connection
	channel ssh.Channel
	// started is set once a program or SFTP has started. A session runs only one.
	started  bool
	env      map[string]string
	terminal *executor.Terminal // nil if the client has not requested one
	resizes  chan executor.WindowSize
	signals  chan string
}

// serveSession serves a session until it is closed.
func (c *connection) serveSession(ctx context.Context, offered ssh.NewChannel) {
	s := &session{conn: c, env: map[string]string{}, resizes: make(chan executor.WindowSize, 1), signals: make(chan string, maxSignals)}
	c.mu.Lock()
	full := c.sessions >= maxSessions
	if !full {
		c.sessions++
	}
	c.mu.Unlock()
	if full {
		reject(offered, ssh.ResourceShortage, fmt.Sprintf("the connection already has %d sessions, the maximum", maxSessions))
		return
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sessions--
	}()
	channel, requests, err := offered.Accept()
	if err != nil {
		return // the connection has ended
	}
	s.channel = channel
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		_ = channel.Close()
	}()
	ended := make(chan struct{})
	for r := range requests { // until the client has closed the channel
		run, ok := s.request(r)
		if run != nil {
			c.running.Add(1)
		}
		if r.WantReply {
			_ = r.Reply(ok, nil) // an error means that the connection has ended
		}
		if run != nil { // after the reply, because the program may end immediately
			go func() {
				defer close(ended)
				defer c.running.Add(-1)
				run(ctx)
			}()
		}
	}
	cancel()
	if s.started {
		<-ended
	}
}

// request handles a request of the client and reports whether it succeeded. If run is not nil, the caller runs it after the
// reply.
func (s *session) request(r *ssh.Request) (run func(context.Context), ok bool) {
	switch r.Type {
	case "env":
		return nil, !s.started && s.addVariable(r.Payload)
	case "pty-req":
		terminal, ok := parseTerminal(r.Payload)
		if !ok || s.started || s.terminal != nil {
			return nil, false
		}
		terminal.Resizes = s.resizes
		s.terminal = terminal
		return nil, true
	case "window-change":
		size, ok := parseWindowChange(r.Payload)
		if ok && s.terminal != nil {
			s.resize(size)
		}
		return nil, ok
	case "signal":
		return nil, s.signal(r.Payload)
	case "shell", "exec":
		line, ok := "", true
		if r.Type == "exec" {
			line, ok = parseText(r.Payload)
		}
		if !ok || strings.ContainsRune(line, 0) || s.started {
			return nil, false
		}
		s.started = true
		return func(ctx context.Context) { s.exec(ctx, line) }, true
	case "subsystem":
		if name, ok := parseText(r.Payload); !ok || name != "sftp" || s.started {
			return nil, false
		}
		s.started = true
		return s.serveFiles, true
	}
	return nil, false // such as forwarding of agents or X11
}

// resize passes a new size to the terminal and replaces a size that is still waiting.
func (s *session) resize(size executor.WindowSize) {
	select {
	case <-s.resizes: // an older size; only this goroutine adds sizes
	default:
	}
	s.resizes <- size
}

// signal queues a signal for the program and reports whether it was queued.
func (s *session) signal(payload []byte) bool {
	name, ok := parseText(payload)
	if !ok || !slices.Contains(signalNames, name) {
		return false
	}
	select {
	case s.signals <- name:
		return true
	default:
		return false
	}
}

// exec runs a command line in the user's shell, or an interactive shell if line is "", and sends the exit status.
func (s *session) exec(ctx context.Context, line string) {
	c := executor.Command{
		Line: line, Env: s.env, User: s.conn.config.User, Stdin: s.channel, Stdout: s.channel, Stderr: s.channel.Stderr(), Terminal: s.terminal, Signals: s.signals,
	}
	status, err := s.conn.config.Inside.Exec(ctx, c)
	if err != nil || ctx.Err() != nil {
		s.complain(ctx, err)
		s.end(executor.ExitStatus{Code: codeNotRun})
		return
	}
	s.end(status)
}

// serveFiles serves SFTP on the channel.
func (s *session) serveFiles(ctx context.Context) {
	if err := s.conn.config.Inside.ServeFiles(ctx, s.conn.config.User, s.channel); err != nil {
		s.complain(ctx, err)
		s.end(executor.ExitStatus{Code: codeNoFiles})
		return
	}
	s.end(executor.ExitStatus{})
}

// complain shows the client an error, or why its connection ends. No program writes to the channel at that time.
func (s *session) complain(ctx context.Context, err error) {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if errors.Is(err, context.Canceled) {
		return // the client has left
	}
	end := "\n"
	if s.terminal != nil { // the client's terminal does not translate newlines
		end = "\r\n"
	}
	_, _ = fmt.Fprintf(s.channel.Stderr(), "switchyard: %s%s", printable(err.Error()), end) // the client may have left
}

// end sends the exit status of the program and closes the channel. Errors mean that the client has left.
func (s *session) end(status executor.ExitStatus) {
	if slices.Contains(signalNames, status.Signal) {
		_, _ = s.channel.SendRequest("exit-signal", false, ssh.Marshal(exitSignal{Signal: status.Signal}))
	} else {
		_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(exitStatus{uint32(status.Code)}))
	}
	_ = s.channel.CloseWrite()
	_ = s.channel.Close()
}
