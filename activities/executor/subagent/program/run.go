package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// Run drives the program to its end through the executor of shell tasks, in the directory "work" of the attempt's
// workspace. It keeps the contract of executor.Executor.Run. The Report is valid even if the attempt failed.
//
// If the program prints a result, the result decides how the attempt ended, regardless of what happens to the program
// afterwards. Without a result the exit code decides, and exit code 0 is a failure.
func Run(ctx context.Context, shell executor.Executor, a executor.Attempt, o Options, spawned func()) (executor.Result, Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return executor.Result{}, Report{}, err
	}
	if a.Dirs.Workspace != "" {
		a.Dirs.Base = filepath.Join(a.Dirs.Workspace, "work")
		if err := os.MkdirAll(a.Dirs.Base, 0o700); err != nil {
			return executor.Result{}, Report{}, fmt.Errorf("make the directory of the agent: %w", err)
		}
	}
	var started bool
	once := func() {
		if !started {
			started = true
			spawned()
		}
	}
	result, report, err := runOnce(ctx, shell, a, o, once)
	if o.Resume == "" || err != nil || !isRefused(result, report) {
		return result, report, err
	}
	if a.Notify != nil {
		a.Notify(fmt.Sprintf("the program could not resume session %s; starting a new session", o.Resume))
	}
	o.Resume = ""
	return runOnce(ctx, shell, a, o, once)
}

// isRefused reports whether a program that was asked to resume a session has failed without doing anything.
func isRefused(r executor.Result, report Report) bool {
	failed := report.Failure != nil && report.Failure.Reason == v1.ReasonExitCode || report.Failure == nil && r.ExitCode != 0
	return failed && !r.Stopped && !r.OOMKilled && r.Signal == "" && report.Usage.GetTurns() == 0
}

// runOnce starts the program, writes the prompt to its standard input, and returns how it ended and what it reported.
func runOnce(ctx context.Context, shell executor.Executor, a executor.Attempt, o Options, spawned func()) (executor.Result, Report, error) {
	command := make([]*structpb.Value, 0, len(o.Command))
	for _, word := range o.argv() {
		command = append(command, structpb.NewStringValue(word))
	}
	a.Spec = &structpb.Struct{Fields: map[string]*structpb.Value{"command": structpb.NewListValue(&structpb.ListValue{Values: command})}}
	stdin, prompt, err := os.Pipe()
	if err != nil {
		return executor.Result{}, Report{}, err
	}
	defer prompt.Close()
	a.Stdin = stdin

	inner, end := context.WithCancelCause(ctx)
	defer end(nil)
	w := newWatch(inner, end, o, a.Stdout)
	a.Stdout = w.lines
	var writer sync.WaitGroup
	result, err := shell.Run(inner, a, func() {
		// Only the program holds the read end now, so that writing fails when it ends.
		stdin.Close()
		writer.Go(func() {
			defer prompt.Close()
			_, _ = io.WriteString(prompt, o.prompt()) // the program need not read it
		})
		w.begin()
		spawned()
	})
	stdin.Close()
	prompt.Close()
	writer.Wait()
	err = errors.Join(err, w.close())
	if executor.AsStartError(err) != nil {
		return result, Report{Session: o.Resume}, err
	}
	result, failure := w.conclude(result, a.Lease.Lost())
	return result, w.report(failure), err
}
