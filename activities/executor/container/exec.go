package container

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"

	"switchyard/activities/executor"
	"switchyard/activities/executor/inside"
)

const (
	// startPatience is how long the engine may take to start a command whose caller has left meanwhile.
	startPatience = 30 * time.Second
	// hangupPatience is how long a command may take to end after SIGHUP.
	hangupPatience = 10 * time.Second
	// killedPatience is how long the engine may take to report the end of a killed command.
	killedPatience = 5 * time.Second
)

// Exec runs a command in the container through the engine. The engine has no call to end a command, so Exec signals its process
// if that is on this machine. A command that ends by a signal yields only an exit code, since the engine does not distinguish
// exits from signals.
func (i *entered) Exec(ctx context.Context, c executor.Command) (executor.ExitStatus, error) {
	r := i.r
	if r.lifecycle.State().IsEnding() {
		return executor.ExitStatus{}, executor.ErrNotRunning
	}
	ctx, done := r.withAttempt(ctx)
	defer done()
	guarded, release := r.e.engine.guard(ctx)
	defer release()
	options, err := i.execOptions(guarded, c)
	if err != nil {
		return executor.ExitStatus{}, causeOf(guarded, err)
	}
	created, err := r.e.docker.ContainerExecCreate(guarded, r.id, options)
	if err != nil {
		return executor.ExitStatus{}, r.refuseExec(causeOf(guarded, err))
	}
	x := &execution{r: r, id: created.ID, command: c, ended: make(chan struct{})}
	body, err := json.Marshal(container.ExecStartOptions{Tty: options.Tty, ConsoleSize: options.ConsoleSize})
	if err != nil {
		return executor.ExitStatus{}, err
	}
	release()
	// The engine starts the command even if the caller leaves during the call. So the call is completed, and follow ends the command.
	starting, started := r.e.engine.guard(context.WithoutCancel(ctx))
	defer started()
	if x.conn, x.reader, err = r.e.engine.hijack(starting, "/exec/"+x.id+"/start", body); err != nil {
		return executor.ExitStatus{}, r.refuseExec(causeOf(starting, err))
	}
	started()
	return x.follow(ctx)
}

// execOptions returns the configuration of a command in the engine's types.
func (i *entered) execOptions(ctx context.Context, c executor.Command) (container.ExecOptions, error) {
	o := container.ExecOptions{
		User: c.User, WorkingDir: c.Dir, Cmd: c.Args,
		AttachStdin: c.Stdin != nil, AttachStdout: true, AttachStderr: true,
	}
	env := maps.Clone(c.Env)
	if env == nil {
		env = map[string]string{}
	}
	if c.Terminal != nil {
		o.Tty = true
		size := sizeOf(c.Terminal.Size)
		o.ConsoleSize = &size
		if _, has := env["TERM"]; c.Terminal.Type != "" && !has {
			env["TERM"] = c.Terminal.Type
		}
	}
	if len(c.Args) == 0 || c.Dir == "" && i.r.atHome {
		user, err := i.account(ctx, c.User)
		if err != nil {
			return o, err
		}
		if c.Dir == "" && i.r.atHome && user.Home != "" {
			o.WorkingDir = user.Home
		}
		if len(c.Args) == 0 {
			if o.Cmd, err = i.loginShell(ctx, user, c.Line); err != nil {
				return o, err
			}
			setDefault(env, "SHELL", o.Cmd[0])
			setDefault(env, "USER", user.Name)
			setDefault(env, "LOGNAME", user.Name)
		}
	}
	env[sessionVariable] = i.r.attempt.ID
	for _, key := range slices.Sorted(maps.Keys(env)) {
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.ContainsRune(env[key], 0) {
			return o, &executor.Refusal{Text: fmt.Sprintf("environment variable %q has an invalid name or value", key)}
		}
		o.Env = append(o.Env, key+"="+env[key])
	}
	if o.Tty && !i.r.e.hasConsoleSize() {
		o.Cmd = i.awaitSize(ctx, c.Terminal.Size, o.Cmd)
	}
	return o, nil
}

func setDefault(env map[string]string, key, value string) {
	if _, has := env[key]; !has && value != "" {
		env[key] = value
	}
}

// account returns a user of the container, or the container's own user if who is "".
func (i *entered) account(ctx context.Context, who string) (inside.User, error) {
	p, ok := i.r.main.enterable()
	if !ok {
		return inside.User{}, nil // the engine looks the user up
	}
	user, err := p.User(i.userOf(who))
	if err != nil {
		return user, err
	}
	if user.Home != "" && i.r.atHome {
		// The engine would create a missing directory, as root.
		if _, err := i.r.e.docker.ContainerStatPath(ctx, i.r.id, path.Clean("/"+user.Home)+"/"); err != nil {
			user.Home = "/"
		}
	}
	return user, nil
}

// shells are the fallbacks for a user without a usable shell.
var shells = []string{"/bin/bash", "/bin/sh"}

// loginShell returns the command that starts the user's shell, either as a login shell or to run line.
func (i *entered) loginShell(ctx context.Context, user inside.User, line string) ([]string, error) {
	for _, shell := range append([]string{user.Shell}, shells...) {
		if shell == "" {
			continue
		}
		if err, sure := i.r.e.commandChecks.checkRunnable(ctx, i.r.id, shell, shell); err != nil || !sure {
			continue
		}
		if line != "" {
			return []string{shell, "-c", line}, nil
		}
		return []string{shell, "-l"}, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, &executor.Refusal{Text: "the container has no shell; name a program to run"}
}

// execution is a command that runs in a container.
type execution struct {
	r       *running
	id      string
	command executor.Command
	execStreams
	// ended is closed when all output has been delivered.
	ended chan struct{}

	mu sync.Mutex
	// found is the process of the command, once it is known.
	found process
}

// follow forwards the command's input and output, and returns its exit status.
func (x *execution) follow(ctx context.Context) (executor.ExitStatus, error) {
	defer x.conn.Close()
	var calls sync.WaitGroup
	defer calls.Wait()
	over, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	var copied error
	go x.copyIn(x.command) // a Read of the input may block
	calls.Go(func() {
		defer close(x.ended)
		copied = x.copyOut(x.command)
	})
	started := make(chan struct{})
	calls.Go(func() { defer close(started); x.findProcess(over) })
	calls.Go(func() { x.resize(over) })
	calls.Go(func() { x.passSignals(over, started) })
	select {
	case <-x.ended:
	case <-ctx.Done():
		x.hangUp(over, started)
		if status, isKnown := x.lastStatus(over); isKnown {
			return status, nil
		}
		return unknownEnd, context.Cause(ctx)
	}
	status, err := x.status(ctx)
	switch {
	case err != nil:
		return status, err
	case x.failure != "":
		if x.hasRun() {
			x.printHeld()
		} else {
			return status, startFailure(x.failure, status.Code)
		}
	}
	return status, copied
}

// unknownEnd is the status of a command whose end the engine does not report.
var unknownEnd = executor.ExitStatus{Code: executor.CodeUnknown}

// status polls the engine for the exit status of the command.
func (x *execution) status(ctx context.Context) (executor.ExitStatus, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, pingAgain) {
		seen, err := x.inspect(ctx)
		switch {
		case err == nil && !seen.Running:
			x.recordStarted(seen.Pid)
			return executor.ExitStatus{Code: seen.ExitCode}, nil
		case ctx.Err() != nil:
			return unknownEnd, context.Cause(ctx)
		case err != nil:
			if x.r.lifecycle.State().IsEnding() {
				return unknownEnd, executor.ErrNotRunning
			}
			x.r.e.engine.awaitPing(ctx)
			if x.r.e.engine.await(ctx) == nil {
				if _, err := x.inspect(ctx); err != nil {
					_ = x.process().signalGroup(killSignal)
					return unknownEnd, fmt.Errorf("the exit code of a command in container %s is unknown: %s", x.r.name, engineMessage(err))
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// lastStatus returns the exit status of a command whose caller has left, if the engine reports it at once.
func (x *execution) lastStatus(ctx context.Context) (executor.ExitStatus, bool) {
	seen, err := x.inspect(ctx)
	return executor.ExitStatus{Code: seen.ExitCode}, err == nil && !seen.Running
}

func (x *execution) inspect(ctx context.Context) (container.ExecInspect, error) {
	ctx, done := x.r.e.engine.guard(ctx)
	defer done()
	seen, err := x.r.e.docker.ContainerExecInspect(ctx, x.id)
	return seen, causeOf(ctx, err)
}
