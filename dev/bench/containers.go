package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/client"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/container/enginetest"
	v1 "switchyard/proto/switchyard/v1"
)

// containerShape is the -shape that compares container tasks with docker run.
const containerShape = "container"

// benchImage is the image that both sides run.
const benchImage = "switchyard-bench/busybox:1"

const (
	printed        = 100_000_000 // bytes
	manyContainers = 50
	atOnce         = 4
)

func containerShapes() []shape {
	print := fmt.Sprintf("yes 'a line of output that is of no interest to anyone' | head -c %d", printed)
	return []shape{
		{"one container of `true`", 5, "", repeat(5, timed(boxed("true", nil))), repeat(5, docker("run", "--rm", benchImage, "sh", "-c", "true"))},
		{
			fmt.Sprintf("%d containers of `true`, %d at once", manyContainers, atOnce), manyContainers, " a container",
			timed(boxed("true", &v1.TaskDefinition{Parallel: structpb.NewNumberValue(manyContainers), Concurrency: atOnce})), xargsDocker,
		},
		{fmt.Sprintf("%d MB of output; on the right docker logs -f", printed/1_000_000), 1, "", timed(boxed(print, nil)), followDocker(print)},
	}
}

// benchContainers prints a row for each shape whose name contains a text.
func benchContainers(ctx context.Context, rounds int, only string) error {
	engine, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return err
	}
	defer engine.Close()
	if err := enginetest.Import(engine, benchImage); err != nil {
		return err
	}
	fmt.Println("| store | shape | Switchyard | docker | ratio |")
	fmt.Println("|---|---|--:|--:|--:|")
	wanted := slices.DeleteFunc(containerShapes(), func(s shape) bool { return !strings.Contains(s.name, only) })
	return benchShapes(ctx, "memory", rounds, wanted)
}

// boxed returns a definition with one container task, based on the given task if it is not nil.
func boxed(command string, task *v1.TaskDefinition) *v1.Definition {
	if task == nil {
		task = &v1.TaskDefinition{}
	}
	spec, _ := structpb.NewStruct(map[string]any{"image": benchImage, "command": command}) // strings are always valid values
	cores := 0.0
	task.Type, task.Spec, task.Resources = "container", spec, &v1.Resources{Cores: &cores}
	return &v1.Definition{Name: "boxed", Tasks: map[string]*v1.TaskDefinition{"t": task}}
}

func docker(args ...string) func(context.Context, *cluster) (time.Duration, error) {
	return func(ctx context.Context, _ *cluster) (time.Duration, error) {
		began := time.Now()
		out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("docker %s: %w: %s", args[0], err, out)
		}
		return time.Since(began), err
	}
}

// xargsDocker runs containers through xargs, several at once.
func xargsDocker(ctx context.Context, _ *cluster) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, "xargs", fmt.Sprintf("-P%d", atOnce), "-I{}", "docker", "run", "--rm", benchImage, "sh", "-c", "true")
	cmd.Stdin = strings.NewReader(strings.Repeat("x\n", manyContainers))
	began := time.Now()
	err := cmd.Run()
	return time.Since(began), err
}

// followDocker returns a measurement that follows the output of a container from its start to its end.
func followDocker(command string) func(context.Context, *cluster) (time.Duration, error) {
	return func(ctx context.Context, _ *cluster) (_ time.Duration, err error) {
		began := time.Now()
		id, err := exec.CommandContext(ctx, "docker", "run", "-d", benchImage, "sh", "-c", command).Output()
		if err != nil {
			return 0, err
		}
		name := string(bytes.TrimSpace(id))
		defer func() { err = errors.Join(err, exec.Command("docker", "rm", "-f", name).Run()) }()
		logs := exec.CommandContext(ctx, "docker", "logs", "-f", name)
		out, err := logs.StdoutPipe()
		if err != nil {
			return 0, err
		}
		if err := logs.Start(); err != nil {
			return 0, err
		}
		n, err := io.Copy(io.Discard, out)
		if err = errors.Join(err, logs.Wait()); err == nil && n != printed {
			err = fmt.Errorf("docker logs gives %d bytes", n)
		}
		return time.Since(began), err
	}
}
