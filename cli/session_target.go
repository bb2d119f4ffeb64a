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

// sessionTarget is what a person enters: a run, or a prefix of its id, and a task of it, or an instance, or "" for the only
// one that runs. Once a stream to it is open, the gateway has said which ones these are, and they stay so.
type sessionTarget struct {
	sessions *client.Sessions
	// opened is called for each stream, before anything goes over it; nil: nothing is.
	opened func()

	mu        sync.Mutex
	run, task string
	resolved  bool
}

// newSessionTarget returns the target that arguments name: RUN, and TASK if there is a second one. "last" is the last run of
// this user, since sessions change what runs.
func newSessionTarget(sys *system, a *client.Client, sessions *client.Sessions, args []string) (*sessionTarget, error) {
	run, err := sys.resolveOwnRun(a.URL, args[0])
	if err != nil {
		return nil, err
	}
	t := &sessionTarget{sessions: sessions, run: run}
	if len(args) > 1 {
		t.task = args[1]
	}
	return t, nil
}

// inside returns the inside of the attempt.
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

// names returns the run and the task, as far as they are known.
func (t *sessionTarget) names() (run, task string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.run, t.task
}

// resolve keeps which run and task the gateway has found, "" if it does not know the task yet.
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

// String returns the task and its run for messages.
func (t *sessionTarget) String() string {
	run, task := t.names()
	if task == "" {
		return "run " + run
	}
	return "task " + task + " of run " + run
}

// isLost reports whether a session has ended without a word on how.
func isLost(err error) bool {
	_, lost := errors.AsType[*caller.LostError](err)
	return lost
}
