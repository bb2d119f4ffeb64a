package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"

	"switchyard/activities/executor"
)

// byDocker is the baseline that the other ways are compared with.
const byDocker = "`docker exec`"

// execWay is a way to run a program in a container.
type execWay struct {
	name string
	run  func() error
}

// execRuns is the number of sequential programs in a round.
const execRuns = 10

// exec measures `true` in a container, alternating between a session, `runs exec` and docker.
func (b *sessionBench) exec(ctx context.Context, rounds int) error {
	found, err := exec.CommandContext(ctx, "docker", "ps", "--quiet", "--no-trunc", "--filter", "label=switchyard.run="+b.run).Output()
	if err != nil {
		return err
	}
	id := string(bytes.TrimSpace(found))
	sessions := b.client.Sessions()
	defer sessions.Close()
	inside := b.inside(sessions, boxTask)
	ways := []execWay{
		{"a session of the client library, over an open connection", func() error {
			status, err := inside.Exec(ctx, executor.Command{Args: []string{"true"}, Stdout: io.Discard, Stderr: io.Discard})
			if err == nil && status.Code != 0 {
				err = fmt.Errorf("the exit code is %d", status.Code)
			}
			return err
		}},
		{"the engine's API, over an open connection", func() error { return b.engineExec(ctx, id) }},
		{"`switchyard runs exec`", func() error {
			args := append(b.command("runs", "exec", b.run, boxTask), "--", "true")
			return runProgram(ctx, b.binary, args...)
		}},
		{byDocker, func() error { return runProgram(ctx, "docker", "exec", id, "true") }},
		{"`switchyard version`, which asks no gateway", func() error { return runProgram(ctx, b.binary, "version") }},
	}
	took := make([][]time.Duration, len(ways))
	for i := range (rounds + 1) * execRuns {
		for w, way := range ways {
			began := time.Now()
			if err := way.run(); err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			if i >= execRuns { // the first round warms the caches
				took[w] = append(took[w], time.Since(began))
			}
		}
	}
	docker := median(took[slices.IndexFunc(ways, func(w execWay) bool { return w.name == byDocker })])
	fmt.Printf("`true` in a container, %d times; to reach: 30 ms more than `docker exec`.\n\n| | took | lowest and highest | more than %s |\n|---|--:|--:|--:|\n", rounds*execRuns, byDocker)
	for w, way := range ways {
		middle := median(took[w])
		fmt.Printf("| %s | %s | %s to %s | %s |\n", way.name, inMs(middle), inMs(slices.Min(took[w])), inMs(slices.Max(took[w])), inMs(middle-docker))
	}
	return nil
}

// engineExec runs `true` in a container with the same engine calls as the docker command.
func (b *sessionBench) engineExec(ctx context.Context, id string) error {
	made, err := b.engine.ContainerExecCreate(ctx, id, container.ExecOptions{Cmd: []string{"true"}, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return err
	}
	attached, err := b.engine.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return err
	}
	defer attached.Close()
	if _, err := io.Copy(io.Discard, attached.Reader); err != nil {
		return err
	}
	ended, err := b.engine.ContainerExecInspect(ctx, made.ID)
	if err == nil && ended.ExitCode != 0 {
		err = fmt.Errorf("the exit code is %d", ended.ExitCode)
	}
	return err
}

func runProgram(ctx context.Context, program string, args ...string) error {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
