package cli

import (
	"context"
	"errors"
	"sync"

	"switchyard/activities/executor"
	"switchyard/activities/sessions/caller"
	"switchyard/activities/sessions/wire"
	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

// sessionTarget is the run and task that a person enters: a run or a prefix of its ID, and a task or instance of it, or
// "" for the only one that runs. The reply to the first stream resolves both names, which then stay fixed.
type sessionTarget struct {
	sessions *client.Sessions
	// opened is called for each stream before any data. It may be nil.
	opened func()

	mu        sync.Mutex
	run, task string
	resolved  bool
}

// newSessionTarget returns the target that the arguments name: RUN, and TASK if there is a second one.
func newSessionTarget(ctx context.Context, sys *system, a *client.Client, sessions *client.Sessions, args []string) (*sessionTarget, error) {
	run, err := sys.resolveRun(ctx, a, args[0])
	if err != nil {
		return nil, err
	}
	t := &sessionTarget{sessions: sessions, run: run}
	if len(args) > 1 {
		t.task = args[1]
	}
	return t, nil
}

// inside returns the inside interface of the attempt.
func (t *sessionTarget) inside() executor.Inside { return caller.New(t.open) }

func (t *sessionTarget) open(ctx context.Context, h *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error) {
	h.RunId, h.Task = t.names()
	conn, reply, err := t.sessions.Open(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	t.resolve(reply.GetRunId(), reply.GetTask())
	if t.opened != nil {
		t.opened()
	}
	return conn, reply, nil
}

// names returns the run and the task, resolved if the gateway has done so.
func (t *sessionTarget) names() (run, task string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.run, t.task
}

// resolve stores the run and task that the gateway has resolved. task is "" if the gateway does not know it yet.
func (t *sessionTarget) resolve(run, task string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.resolved || run == "" {
		return
	}
	t.run = run
	if task != "" {
		t.task, t.resolved = task, true
	}
}

// words returns RUN and TASK as a person types them.
func (t *sessionTarget) words() string {
	run, task := t.names()
	if task == "" {
		return output.ShellWord(run)
	}
	return output.ShellWord(run) + " " + output.ShellWord(task)
}

// String describes the task and its run for messages.
func (t *sessionTarget) String() string {
	run, task := t.names()
	if task == "" {
		return "run " + run
	}
	return "task " + task + " of run " + run
}

// isLost reports whether a session has ended without an exit status.
func isLost(err error) bool {
	_, lost := errors.AsType[*caller.LostError](err)
	return lost
}
