package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// envPatience is how long the gateway may be unreachable during the wait for an environment.
const envPatience = time.Minute

// awaitEnvironment waits until the version of an environment that is being created is ready, and shows its progress.
func awaitEnvironment(ctx context.Context, sys *system, a *client.Client, wanted *v1.Environment) (*v1.Environment, error) {
	p := &envProgress{sys: sys, wanted: wanted, begun: sys.now()}
	defer p.end()
	answered := time.Now()
	for {
		e, err := getEnvironment(ctx, a, wanted.GetName())
		switch {
		case ctx.Err() != nil:
			return nil, p.leave()
		case err == nil:
			answered = time.Now()
			if isDone, err := p.look(e); isDone || err != nil {
				return e, err
			}
		case isMissing(err):
			return nil, goneEnvironment(wanted)
		case exit.CodeOf(ctx, err) != exit.CodeSystem || time.Since(answered) > envPatience:
			return nil, fmt.Errorf("environment %s may still be created; check with `switchyard env get %[1]s`: %w", wanted.GetName(), err)
		default:
			p.say("the gateway does not answer; the creation continues")
		}
		select {
		case <-ctx.Done():
			return nil, p.leave()
		case <-time.After(sys.pollInterval):
		}
	}
}

// isMissing reports whether an error means that the gateway has no environment of that name.
func isMissing(err error) bool {
	failed, ok := errors.AsType[*exit.Error](err)
	return ok && failed.Code == exit.CodeUsage
}

// goneEnvironment returns the error for an environment that another command deleted during the wait.
func goneEnvironment(wanted *v1.Environment) error {
	return &exit.Error{Code: exit.CodeNotDone, Err: fmt.Errorf("environment %s (version %d) was deleted before it was ready", wanted.GetName(), wanted.GetVersion())}
}

// envProgress shows how much of an environment is stored: a progress line on a terminal, else a line whenever a new
// reason delays the creation.
type envProgress struct {
	sys    *system
	wanted *v1.Environment
	begun  time.Time
	said   string
}

// look shows an environment and reports whether the awaited version is ready. It returns an error if that version can
// never become ready.
func (p *envProgress) look(e *v1.Environment) (isDone bool, err error) {
	state, reason, size := e.GetState(), e.GetError(), e.GetSize()
	older := ""
	if state == v1.EnvironmentReady && e.GetVersion() < p.wanted.GetVersion() {
		next := e.GetCreation()
		state, reason, size = next.GetState(), next.GetError(), next.GetSize()
		older = fmt.Sprintf("version %d is kept; ", e.GetVersion())
	}
	switch state {
	case v1.EnvironmentReady:
		return true, nil
	case "":
		return false, goneEnvironment(p.wanted)
	case v1.EnvironmentFailed:
		return false, &exit.Error{
			Code: exit.CodeNotDone, Err: fmt.Errorf("environment %s (version %d) was not created%s", p.wanted.GetName(), p.wanted.GetVersion(), because(words.OneLine(reason))),
			Hint: fmt.Sprintf("%s`switchyard nodes get %s` shows the node that was to create it", older, p.wanted.GetNode()),
		}
	}
	p.draw(size)
	p.say(words.OneLine(reason))
	return false, nil
}

// draw updates the progress line on a terminal.
func (p *envProgress) draw(size int64) {
	if p.sys.stderrTerminal {
		took := max(p.sys.now().Sub(p.begun).Seconds(), 0.001)
		// A failure to draw must not end the wait.
		_ = p.sys.screen.Draw([]string{fmt.Sprintf("stored %s, %s/s", words.Size(size), words.Size(int64(float64(size)/took)))})
	}
}

// say prints a reason for a delay unless it was the last one printed.
func (p *envProgress) say(what string) {
	if what = cmp.Or(what, p.said); what != p.said {
		fmt.Fprintf(p.sys.screen, "environment %s: %s\n", p.wanted.GetName(), what)
		p.said = what
	}
}

// leave prints that the creation continues, and returns the error of a command that was interrupted while it waited.
func (p *envProgress) leave() error {
	p.end()
	fmt.Fprintf(p.sys.screen, "environment %s is still being created; `switchyard env get %[1]s` shows its progress, and `switchyard env delete %[1]s` cancels it\n", p.wanted.GetName())
	return exit.Silent(exit.CodeInterrupted)
}

// end clears the progress line.
func (p *envProgress) end() {
	if p.sys.stderrTerminal {
		_ = p.sys.screen.Draw(nil)
	}
}
