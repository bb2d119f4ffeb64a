//go:build linux && engines

package vps_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/container/enginetest"
	"switchyard/activities/executor/vps"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// workerVariable turns the test binary into a worker that a test can kill. It holds a task type, a run and an image.
const workerVariable = "SWITCHYARD_TEST_WORKER"

// session is a command that a worker runs in a machine.
type session struct {
	executor.Command
	keyboard string
	// ends and stays hold the arguments of the processes that it starts: those that end with the worker and those that
	// stay.
	ends, stays []string
}

// sessions are the commands that the worker runs before it is killed.
var sessions = []session{
	{Command: executor.Command{Args: []string{"sleep", "100001"}}, ends: []string{"sleep 100001"}},
	{
		Command: executor.Command{Line: "trap 'echo bye >/tmp/said; exit' HUP; sleep 100002 & setsid sleep 100003 & while :; do sleep 0.1; done"},
		ends:    []string{"sleep 100002"}, stays: []string{"sleep 100003"},
	},
	{Command: executor.Command{Line: "trap '' HUP; sleep 100004"}, ends: []string{"sleep 100004"}},
	{
		Command:  executor.Command{Args: []string{"sh", "-i"}, Terminal: &executor.Terminal{Type: "xterm"}},
		keyboard: "(trap '' HUP; exec sleep 100005) & \nsetsid sleep 100006 & \nsleep 100007\n",
		ends:     []string{"sh -i", "sleep 100007"}, stays: []string{"sleep 100005", "sleep 100006"},
	},
	{
		Command: executor.Command{Args: []string{"sleep", "100008"}, User: "worker", Terminal: &executor.Terminal{}},
		ends:    []string{"sleep 100008"},
	},
}

// workIfAsked runs an attempt with all sessions until the process is killed, if workerVariable is set.
func workIfAsked() {
	words := strings.Fields(os.Getenv(workerVariable))
	if len(words) == 0 {
		return
	}
	fmt.Println(work(words[0], words[1], words[2]))
	os.Exit(1)
}

// work runs an attempt with all sessions. It returns only after a failure.
func work(kind, run, image string) error {
	c, err := containers.New(containers.Options{})
	if err != nil {
		return err
	}
	e := survivorOf(kind, c)
	a, err := survivor(kind, run, image)
	if err != nil {
		return err
	}
	ended := make(chan error, len(sessions)+1)
	go func() {
		_, err := e.Run(context.Background(), a, func() {
			in, err := e.Enter(context.Background(), a.ID)
			if err != nil {
				ended <- err
			}
			for _, s := range sessions {
				keys, keyboard := io.Pipe()
				s.Stdin = keys
				go func() {
					status, err := in.Exec(context.Background(), s.Command)
					ended <- fmt.Errorf("%v ends with %+v: %w", s.Args, status, err)
				}()
				go func() { _, _ = io.WriteString(keyboard, s.keyboard) }()
			}
			fmt.Println("started")
		})
		ended <- err
	}()
	return <-ended
}

// enterable is an executor whose attempts survive the worker and can be entered.
type enterable interface {
	executor.Executor
	executor.Survivor
	Enter(ctx context.Context, id string) (executor.Inside, error)
}

func survivorOf(kind string, c *containers.Executor) enterable {
	if kind == v1.TypeContainer {
		return c
	}
	return vps.New(c, nil)
}

// survivor returns the attempt of a run, which is the same in all processes.
func survivor(kind, run, image string) (executor.Attempt, error) {
	fields := map[string]any{"image": image, "network": "none"}
	if kind == v1.TypeContainer {
		fields["command"] = "sleep 100000"
	}
	spec, err := structpb.NewStruct(fields)
	return executor.Attempt{
		ID: run + "/box/c1", Identity: executor.Identity{Run: run, Task: "box", Node: "node-" + run, Index: -1, Claim: 1},
		Spec: spec, Streams: executor.Streams{Stdout: io.Discard, Stderr: io.Discard}, Ending: executor.Ending{Grace: 2 * time.Minute},
	}, err
}

// The sessions of a killed worker end as on the hang-up of a terminal. All other processes continue.
func TestSessionsEndAfterTheirWorkerWasKilled(t *testing.T) {
	image := enginetest.Image(t)
	for _, kind := range []string{v1.TypeContainer, v1.TypeVPS} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			run := fmt.Sprintf("orphans-%s-%d", kind, time.Now().UnixNano())
			a, err := survivor(kind, run, image)
			if err != nil {
				t.Fatal(err)
			}
			name := "switchyard-" + run + "-box-0-c1"
			if kind == v1.TypeVPS {
				name = "switchyard-vps-" + run + "-box-0-c1"
			}
			_, c := newExecutor(t, containers.Options{})
			e := survivorOf(kind, c)
			t.Cleanup(func() { _ = e.Remove(context.Background(), executor.Leftover{ID: a.ID, Identity: a.Identity}) })
			kill := startWorker(t, kind, run, image)
			dockerRun(t, "exec", "-d", name, "sleep", "100009")
			ends, stays := []string{}, []string{"sleep 100009"}
			for _, s := range sessions {
				ends, stays = append(ends, s.ends...), append(stays, s.stays...)
			}
			testneeds.Await(t, "all sessions run", func() bool {
				return !slices.ContainsFunc(append(slices.Clone(ends), stays...), func(p string) bool { return !runs(t, name, p) })
			})
			kill()

			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { _, err := e.Reattach(ctx, a); ended <- err }()
			defer func() {
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()
			var in executor.Inside
			testneeds.Await(t, "it is entered", func() (is bool) {
				var err error
				in, err = e.Enter(t.Context(), a.ID)
				return err == nil
			})
			later := make(chan error, 1)
			session, hangUp := context.WithCancel(context.Background())
			go func() {
				_, err := in.Exec(session, executor.Command{Args: []string{"sleep", "100010"}})
				later <- err
			}()
			defer func() { hangUp(); <-later }()
			testneeds.Await(t, "a later session runs", func() bool { return runs(t, name, "sleep 100010") })
			for _, p := range ends {
				testneeds.Await(t, p+" ends", func() bool { return !runs(t, name, p) })
			}
			for _, p := range append(stays, "sleep 100010") {
				if !runs(t, name, p) {
					t.Errorf("%s has ended", p)
				}
			}
			testneeds.Await(t, "a session says goodbye", func() bool {
				return dockerRun(t, "exec", name, "sh", "-c", "cat /tmp/said 2>/dev/null; true") == "bye\n"
			})
		})
	}
}

// runs reports whether a container has a process with the given arguments.
func runs(t *testing.T, container, args string) bool {
	t.Helper()
	return slices.Contains(strings.Split(dockerRun(t, "exec", container, "ps", "-o", "args"), "\n"), args)
}

// startWorker starts a worker with an attempt and returns a function that kills it.
func startWorker(t *testing.T, kind, run, image string) (kill func()) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), workerVariable+"="+kind+" "+run+" "+image)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		t.Fatalf("the worker prints %q, %v", line, err)
	}
	return kill
}
