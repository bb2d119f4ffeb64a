package guest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
)

const (
	// hangUpWait is how long a program may run after the SIGHUP that it receives when its caller is gone.
	hangUpWait = 2 * time.Second
	// killWait is how long the sshd may take to report the end of a killed program.
	killWait = 3 * time.Second
	// deliveryWait bounds the delivery of each of these two signals.
	deliveryWait = 5 * time.Second
	// closeWait is how long the connections outlive the attempt, so that its programs can be hung up on.
	closeWait = 2*deliveryWait + hangUpWait + killWait
)

// unknownEnd is the status of a program that has started and whose end is unknown.
var unknownEnd = executor.ExitStatus{Code: executor.CodeUnknown}

// errLost reports that the end of a program is unknown because the connection broke.
var errLost = errors.New("the connection to the machine broke; the outcome of the program is unknown")

// Exec runs a program in the machine.
func (g *Guest) Exec(ctx context.Context, c executor.Command) (executor.ExitStatus, error) {
	ctx, done := g.attemptContext(ctx)
	defer done()
	if err := g.checkUser(c.User); err != nil {
		return executor.ExitStatus{}, err
	}
	c.Dir, c.Env = g.resolve(c.Dir), g.environment(c)
	x := &execution{
		g: g, command: c, token: "switchyard-" + rand.Text(),
		started: make(chan struct{}), exited: make(chan struct{}), closed: make(chan struct{}), copied: make(chan struct{}),
	}
	var err error
	if x.line, err = instructions(c, x.token); err != nil {
		return executor.ExitStatus{}, err
	}
	if err := x.open(ctx); err != nil {
		return executor.ExitStatus{}, err
	}
	return x.follow(ctx)
}

// execution is a running program in the machine.
type execution struct {
	g       *Guest
	command executor.Command
	token   string
	line    string
	channel *channel
	output

	// started is closed when the program has been told to start; pid is set before that. With OpenSSH, pid leads a
	// process group.
	started chan struct{}
	pid     int
	// sent reports whether the program may have started.
	sent atomic.Bool
	// exited is closed when the program has ended; status is set before that.
	exited chan struct{}
	status executor.ExitStatus
	// closed is closed when the sshd has closed the channel.
	closed chan struct{}
	// copied is closed when all output has been passed on.
	copied chan struct{}
}

// open makes the sshd start the launcher in a session.
func (x *execution) open(ctx context.Context) error {
	var asked []request
	if t := x.command.Terminal; t != nil {
		asked = append(asked, request{"pty-req", ptyRequest(t), "the sshd of the machine does not allocate terminals (check PermitTTY in its sshd_config)"})
	}
	var err error
	x.channel, err = x.g.startSession(ctx, append(asked, execRequest(launcher(x.token, x.command.Terminal != nil)))...)
	if err == nil {
		go x.watch()
	}
	return err
}

// watch reads the requests of the channel, which report how the program ends.
func (x *execution) watch() {
	defer close(x.closed)
	for r := range x.channel.requests {
		status, ok := exitOf(r)
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
		select {
		case <-x.exited:
		default:
			if ok {
				x.status = status
				close(x.exited)
			}
		}
	}
}

// follow passes input and output on, and returns the exit status of the program.
func (x *execution) follow(ctx context.Context) (executor.ExitStatus, error) {
	var calls sync.WaitGroup
	over, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer calls.Wait()
	defer finish()
	defer x.channel.end()
	defer x.stopWriting()
	go x.copyAll() // ends with the channel
	calls.Go(func() { x.passResizes(over) })
	calls.Go(func() { x.passSignals(over) })
	select {
	case <-x.exited:
	case <-x.closed:
	case <-ctx.Done():
		return x.hangUp(ctx)
	}
	if !x.drain(ctx) {
		if context.Cause(ctx) != nil && !x.hasExited() {
			return x.hangUp(ctx)
		}
	}
	if !x.hasExited() {
		return x.withoutStatus()
	}
	if text := x.failure(); text != "" {
		return executor.ExitStatus{Code: x.status.Code}, refuse("the machine cannot start programs as user %s: %s", x.g.options.User, text)
	}
	return x.status, x.writeError()
}

func (x *execution) hasExited() bool {
	select {
	case <-x.exited:
		return true
	default:
		return false
	}
}

// withoutStatus returns the result for a program whose channel was closed without an exit status.
func (x *execution) withoutStatus() (executor.ExitStatus, error) {
	switch {
	case x.g.life.Err() != nil:
		return unknownEnd, context.Cause(x.g.life)
	case !x.sent.Load():
		return executor.ExitStatus{}, errors.New("the connection to the machine broke before the program started")
	case x.channel.isBroken(x.closed):
		return unknownEnd, errLost
	}
	return unknownEnd, errors.New("the sshd of the machine did not report an exit status")
}

// hangUp ends a program whose caller is gone. Its waits are bounded, in case the machine does not answer.
func (x *execution) hangUp(ctx context.Context) (executor.ExitStatus, error) {
	if !x.sent.Load() {
		return executor.ExitStatus{}, context.Cause(ctx)
	}
	for _, step := range []struct {
		signal string
		wait   time.Duration
	}{{"HUP", hangUpWait}, {"KILL", killWait}} {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliveryWait)
		isSent := make(chan struct{})
		go func() {
			defer close(isSent)
			x.signal(limit, step.signal)
		}()
		select {
		case <-x.exited:
		case <-x.closed:
		case <-isSent:
			select {
			case <-x.exited:
			case <-x.closed:
			case <-time.After(step.wait):
			}
		}
		cancel()
		<-isSent
		if x.hasExited() {
			return x.status, nil
		}
	}
	if x.g.life.Err() != nil {
		return unknownEnd, context.Cause(x.g.life)
	}
	return unknownEnd, context.Cause(ctx)
}

// exitOf returns the status in a request that reports the end of a program (RFC 4254, section 6.10).
func exitOf(r *ssh.Request) (executor.ExitStatus, bool) {
	switch r.Type {
	case "exit-status":
		var m struct{ Code uint32 }
		if ssh.Unmarshal(r.Payload, &m) != nil {
			return executor.ExitStatus{}, false
		}
		return executor.ExitStatus{Code: int(m.Code)}, true
	case "exit-signal":
		var m struct {
			Signal   string
			Core     bool
			Message  string
			Language string
		}
		if ssh.Unmarshal(r.Payload, &m) != nil {
			return executor.ExitStatus{}, false
		}
		name, _, _ := strings.Cut(m.Signal, "@")
		if number, known := signalNumbers[name]; known {
			return executor.ExitStatus{Code: 128 + number, Signal: name}, true
		}
		return unknownEnd, true // OpenSSH names no other signals
	}
	return executor.ExitStatus{}, false
}
