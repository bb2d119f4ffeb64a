package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/sessions/caller"
	"switchyard/activities/sessions/wire"
	"switchyard/cli/client"
	"switchyard/dev/processes"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/embedded"
	"switchyard/workflows/visibility"
)

// enteredTask is the shell task that sessions enter.
const enteredTask = "shell"

// benchSessions runs the session measurements whose name contains a text. Gateway and node run in processes of their
// own, and Temporal in this one. Clients are in this process or are the program itself.
func benchSessions(ctx context.Context, rounds int, part string) (err error) {
	b := &sessionBench{}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(ctx); err != nil {
		return err
	}
	for _, shape := range []struct {
		name    string
		measure func(context.Context, int) error
	}{{"forward", b.forward}, {"exec", b.exec}, {"idle", b.idle}, {"logins", b.logins}} {
		if !strings.Contains(shape.name, part) {
			continue
		}
		if err := shape.measure(ctx, rounds); err != nil {
			return fmt.Errorf("%s: %w", shape.name, err)
		}
		fmt.Println()
	}
	return nil
}

// sessionBench holds a gateway, a node, and a run with a task for sessions.
type sessionBench struct {
	// binary is the program of this tree, and dir the folder for the files of the processes.
	binary, dir     string
	temporal        *embedded.Server
	gateway, worker *processes.Process
	client          *client.Client
	// run is the ID of the run.
	run string
}

// open starts all processes and waits until the task runs.
func (b *sessionBench) open(ctx context.Context) error {
	var err error
	if b.binary, b.dir, err = buildBinary(ctx); err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	if b.temporal, err = embedded.Start(ctx, embedded.Options{Logger: quiet, SearchAttributes: visibility.Types()}); err != nil {
		return err
	}
	env := []string{"TEMPORAL_ADDRESS=" + b.temporal.Address()}
	b.gateway, err = startProcess(ctx, b.dir, "SSH", env, b.binary, "gateway", "--address", "127.0.0.1:0", "--ssh-address", "127.0.0.1:0",
		"--store", filepath.Join(b.dir, "store"), "--log-level", "error")
	if err != nil {
		return err
	}
	b.worker, err = startProcess(ctx, b.dir, "Node", env, b.binary, "worker", "--name", benchNode, "--gateway", said(b.gateway, "Gateway"),
		"--metrics-address", "none", "--drain-timeout", "1s", "--log-level", "error")
	if err != nil {
		return err
	}
	url, err := client.ParseGateways("the output of the gateway", said(b.gateway, "Gateway"))
	if err != nil {
		return err
	}
	b.client = client.New(url, client.Options{})
	return b.startRun(ctx)
}

// startRun starts the run and waits until its task runs.
func (b *sessionBench) startRun(ctx context.Context) error {
	document := "name: entered\ntasks: { " + enteredTask + ": { type: shell, spec: { command: 'sleep 36000' }, resources: { cores: 0 } } }\n"
	submitted, err := client.Call(ctx, b.client, b.client.Runs.SubmitRun, &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document}})
	if err != nil {
		return err
	}
	b.run = submitted.GetId()
	for {
		got, err := client.Call(ctx, b.client, b.client.Runs.GetRun, &v1.GetRunRequest{Id: b.run})
		if err != nil {
			return err
		}
		task := got.GetRun().GetTasks()[enteredTask]
		switch state := task.GetState(); {
		case state == v1.TaskRunning:
			return nil
		case v1.IsTaskTerminal(state):
			return fmt.Errorf("the task is %s: %s", state, task.GetError())
		}
		if err := processes.Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// close ends the run and then the processes.
func (b *sessionBench) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if b.run != "" {
		_, err := client.Call(ctx, b.client, b.client.Runs.CancelRun, &v1.CancelRunRequest{Id: b.run, Reason: "everything is measured"})
		for errs = append(errs, err); err == nil; {
			got, failed := client.Call(ctx, b.client, b.client.Runs.GetRun, &v1.GetRunRequest{Id: b.run, Brief: true})
			if err = failed; err != nil || v1.IsRunTerminal(got.GetRun().GetState()) {
				break
			}
			err = processes.Pause(ctx, 50*time.Millisecond)
		}
		errs = append(errs, err)
	}
	if b.client != nil {
		b.client.Close()
	}
	for _, p := range []*processes.Process{b.worker, b.gateway} {
		if p != nil {
			end(p)
		}
	}
	if b.temporal != nil {
		errs = append(errs, b.temporal.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

// inside returns the inside interface of the task over the given sessions, as commands use it.
func (b *sessionBench) inside(sessions *client.Sessions) executor.Inside {
	return caller.New(func(ctx context.Context, h *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error) {
		h.RunId, h.Task = b.run, enteredTask
		return sessions.Open(ctx, h)
	})
}

// command returns the arguments of a command that uses the gateway.
func (b *sessionBench) command(args ...string) []string {
	return append(args, "--gateway", said(b.gateway, "Gateway"))
}

// sshAddress returns the gateway's address for SSH clients.
func (b *sessionBench) sshAddress() string {
	address, _, _ := strings.Cut(said(b.gateway, "SSH"), ": ")
	return address
}
