package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"time"

	"switchyard/activities/executor"
)

// execRuns is the number of sequential programs in a round.
const execRuns = 10

// exec measures `true` in the task, alternating between a session over an open connection, `runs exec`, and a command
// of the program that asks no gateway. The last one is the part of `runs exec` that is the start of the program.
func (b *sessionBench) exec(ctx context.Context, rounds int) error {
	sessions := b.client.Sessions()
	defer sessions.Close()
	inside := b.inside(sessions)
	ways := []func() error{
		func() error {
			status, err := inside.Exec(ctx, executor.Command{Args: []string{"true"}, Stdout: io.Discard, Stderr: io.Discard})
			if err == nil && status.Code != 0 {
				err = fmt.Errorf("the exit code is %d", status.Code)
			}
			return err
		},
		func() error {
			return b.runProgram(ctx, append(b.command("runs", "exec", b.run, enteredTask), "--", "true")...)
		},
		func() error { return b.runProgram(ctx, "version") },
	}
	took := make([][]time.Duration, len(ways))
	for i := range (rounds + 1) * execRuns {
		for w, way := range ways {
			began := time.Now()
			if err := way(); err != nil {
				return err
			}
			if i >= execRuns { // the first round warms the caches
				took[w] = append(took[w], time.Since(began))
			}
		}
	}
	fmt.Printf("`true` in the task: %s in a session, %s by `runs exec`; `version` takes %s\n", inMs(median(took[0])), inMs(median(took[1])), inMs(median(took[2])))
	return nil
}

func (b *sessionBench) runProgram(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, b.binary, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", args[0], err, out)
	}
	return nil
}
