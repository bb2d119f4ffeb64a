package container

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container/enginetest"
)

// lateBody is a response body that delays its reads.
type lateBody struct {
	io.ReadCloser
	by time.Duration
}

func (b lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		time.Sleep(b.by)
	}
	return n, err
}

// writes is a function that is called for each write.
type writes func()

func (do writes) Write(p []byte) (int, error) {
	do()
	return len(p), nil
}

// TestStoppedProgramKeepsItsCodeWhenEngineIsSlow checks that a stopped program which ends by itself
// keeps its exit code, although the engine reports it late.
func TestStoppedProgramKeepsItsCodeWhenEngineIsSlow(t *testing.T) {
	t.Parallel()
	docker, busybox := enginetest.Engine(t), enginetest.Image(t)
	e := newFor(t, Options{Host: changedEngine(t, docker, func(r *http.Response) error {
		if strings.HasSuffix(r.Request.URL.Path, "/wait") {
			r.Body = lateBody{r.Body, 2 * endPatience}
		}
		return nil
	})})
	spec, err := structpb.NewStruct(map[string]any{
		"image": busybox, "network": "none", "command": "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	name := "run-" + strings.TrimPrefix(digestOf(randomTar(t)), "sha256:")[:12]
	result, err := e.Run(ctx, executor.Attempt{
		ID: name + "/late/c1", Identity: executor.Identity{Run: name, Task: "late", Node: "n", Index: -1, Claim: 1},
		Spec: spec, Stdout: writes(cancel), Stderr: io.Discard, Grace: time.Minute,
	}, func() {})
	if err != nil || !result.Stopped || result.ExitCode != 7 || result.Signal != "" {
		t.Errorf("%+v, %v; want a stopped one with the program's own exit code 7", result, err)
	}
}

// TestRunWaitsForFirstAnswer checks that Run waits for the first answer of the engine, and that the
// executor is unavailable before.
func TestRunWaitsForFirstAnswer(t *testing.T) {
	t.Parallel()
	docker, busybox := enginetest.Engine(t), enginetest.Image(t)
	answer := make(chan struct{})
	e := newFor(t, Options{Host: changedEngine(t, docker, func(r *http.Response) error {
		if strings.HasSuffix(r.Request.URL.Path, "/_ping") {
			<-answer
		}
		return nil
	})})
	if err := e.Available(); err == nil {
		t.Error("an engine that has not answered is available")
	}
	time.AfterFunc(2*firstPing, func() { close(answer) })
	result, out, err := runSpec(t, e, "first", map[string]any{"image": busybox, "network": "none", "command": "echo ran"})
	if err != nil || out != "ran\n" {
		t.Errorf("%+v, %q, %v", result, out, err)
	}
}

// TestCaptureCancelledBeforeTheEnginePausesLeavesTheContainerRunning cancels a capture whose pause reaches the engine late, whether or
// not its caller still waits.
func TestCaptureCancelledBeforeTheEnginePausesLeavesTheContainerRunning(t *testing.T) {
	t.Parallel()
	docker, busybox := enginetest.Engine(t), enginetest.Image(t)
	capturing, giveUp := context.WithCancel(t.Context())
	host := proxyOf(t, docker, nil, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pause") {
			*r = *r.WithContext(context.WithoutCancel(r.Context()))
			giveUp()
			time.Sleep(500 * time.Millisecond)
		}
	})
	e := newFor(t, Options{Host: host})
	spec, err := structpb.NewStruct(map[string]any{
		"image": busybox, "network": "none", "command": "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, ended := make(chan struct{}), make(chan error, 1)
	name := "run-" + strings.TrimPrefix(digestOf(randomTar(t)), "sha256:")[:12]
	a := executor.Attempt{
		ID: name + "/late/c1", Identity: executor.Identity{Run: name, Task: "late", Node: "n", Index: -1, Claim: 1},
		Spec: spec, Stdout: writes(sync.OnceFunc(func() { close(ready) })), Stderr: io.Discard, Grace: time.Minute,
	}
	go func() {
		_, err := e.Run(ctx, a, func() {})
		ended <- err
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	if _, err := e.Capture(capturing, a.ID, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("the capture: %v", err)
	}
	time.Sleep(time.Second) // a pause that reaches the engine after the capture has ended takes effect by then
	c, err := docker.ContainerInspect(t.Context(), e.find(a.ID).id)
	if err != nil {
		t.Error(err)
	} else if c.State.Paused {
		t.Error("the container is paused")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
