package mcptool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
)

const (
	// stopLimit is how long a program may take to end by itself after its standard input is closed.
	stopLimit = 2 * time.Second
	// maxMessage bounds a message of a server, in bytes.
	maxMessage = 8 << 20
	// maxLogLine bounds a server's line in the log, in bytes. lastLines is how many lines an error shows.
	maxLogLine = 4 << 10
	lastLines  = 5
)

// program is a server that runs as a program of the shell executor.
type program struct {
	server *server
	// requests is the program's standard input. answers carries the lines of its standard output that are JSON.
	requests *os.File
	answers  *io.PipeReader
	cancel   context.CancelFunc
	// ended is closed when nothing of the program is left; result and err are set before that.
	ended  chan struct{}
	result executor.Result
	err    error

	mu   sync.Mutex
	last []string // the last log lines
}

// start starts the program of the server. Lines of its output that are no messages of the protocol go to the log.
func (s *server) start() (*program, error) {
	if s.o.Shell == nil {
		return nil, errors.New("this node does not start programs for agents")
	}
	stdin, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answers, stdout := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{server: s, requests: requests, answers: answers, cancel: cancel, ended: make(chan struct{})}
	// Lines that are not JSON are not part of the protocol: many programs print a greeting on standard output.
	out := &lineWriter{limit: maxMessage, take: func(line []byte, whole bool) error {
		if !whole {
			p.logLine("a message of more than " + fmt.Sprint(maxMessage) + " bytes: " + string(line[:min(len(line), 200)]))
			return stdout.CloseWithError(errMessageTooLarge)
		}
		if !isMessage(line) {
			p.logLine(string(line))
			return nil
		}
		_, err := stdout.Write(append(line, '\n'))
		return err
	}}
	errs := &lineWriter{limit: maxLogLine, take: func(line []byte, _ bool) error {
		p.logLine(string(line))
		return nil
	}}
	attempt := s.attempt(stdin, out, errs)
	go func() {
		p.result, p.err = s.o.Shell.Run(ctx, attempt, func() { stdin.Close() })
		stdin.Close()
		errs.flush()
		out.flush()
		cancel()
		close(p.ended) // before the session ends, so that its error includes how the program ended
		stdout.CloseWithError(io.EOF)
	}()
	return p, nil
}

var errMessageTooLarge = fmt.Errorf("a message has more than %d bytes", maxMessage)

// attempt returns the attempt that runs the program.
func (s *server) attempt(stdin *os.File, stdout, stderr io.Writer) executor.Attempt {
	command := make([]any, len(s.spec.GetCommand()))
	for i, word := range s.spec.GetCommand() {
		command[i] = strings.ToValidUTF8(word, "\uFFFD")
	}
	fields := map[string]any{"command": command}
	if s.o.Dir != "" {
		fields["workingDirectory"] = s.o.Dir
	}
	spec, err := structpb.NewStruct(fields)
	if err != nil {
		panic(err) // strings only
	}
	env := map[string]string{}
	if dir, ok := s.o.Attempt.Env["TMPDIR"]; ok {
		env["TMPDIR"] = dir
	}
	for name, value := range s.spec.GetEnv() {
		env[name] = value
	}
	a := s.o.Attempt
	a.ID += "/mcp-" + cleanName(s.name)
	a.Spec, a.Env, a.Journal = spec, env, nil
	a.Stdin, a.Stdout, a.Stderr = stdin, stdout, stderr
	return a
}

// logLine logs a line that is not part of the protocol, and keeps it for errors.
func (p *program) logLine(line string) {
	line = strings.ToValidUTF8(strings.TrimRight(line, "\r"), "\uFFFD")
	if len(line) > maxLogLine {
		line = strings.ToValidUTF8(line[:maxLogLine], "") + "…"
	}
	p.mu.Lock()
	p.last = append(p.last, line)
	p.last = p.last[max(0, len(p.last)-lastLines):]
	p.mu.Unlock()
	p.server.o.Log("mcp " + p.server.name + ": " + line)
}

// hasEnded reports whether nothing of the program is left.
func (p *program) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// abandon breaks the pipes, so that no goroutine waits for the program, and begins to stop it.
func (p *program) abandon() {
	p.requests.Close()
	p.answers.Close()
	p.cancel()
}

// end closes the pipes, waits up to wait for the program to end, then stops it. It returns when nothing of the program
// is left.
func (p *program) end(wait time.Duration) {
	p.requests.Close()
	p.answers.Close()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		p.cancel()
		<-p.ended
	}
}

// endingSummary describes how the program ended, if it has ended, and what it printed last.
func (p *program) endingSummary() string {
	var text string
	if p.hasEnded() {
		switch start := executor.AsStartError(p.err); {
		case start != nil:
			return ": " + start.Error()
		case p.result.Stopped:
		case p.result.Signal != "":
			text = "; its program was ended by " + p.result.Signal
		case p.err != nil && p.result == (executor.Result{}):
			return ": " + p.err.Error()
		default:
			text = fmt.Sprintf("; its program has ended with exit code %d", p.result.ExitCode)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.last) > 0 {
		text += "; its last lines: " + strings.Join(p.last, "\n")
	}
	return text
}
