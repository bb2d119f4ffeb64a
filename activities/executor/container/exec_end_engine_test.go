//go:build linux && engines

package container

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container/enginetest"
)

// TestCommandThatTheEngineHasForgottenHasAnUnknownEnd checks that Exec reports an unknown status, rather than a failed
// start, for a command that ran but that its engine no longer knows, as after a restart of the engine.
func TestCommandThatTheEngineHasForgottenHasAnUnknownEnd(t *testing.T) {
	t.Parallel()
	docker, busybox := enginetest.Engine(t), enginetest.Image(t)
	var forgotten atomic.Bool
	e := newFor(t, Options{Host: changedEngine(t, docker, func(r *http.Response) error {
		if path := r.Request.URL.Path; forgotten.Load() && strings.Contains(path, "/exec/") && strings.HasSuffix(path, "/json") {
			r.StatusCode, r.Status = http.StatusNotFound, "404 Not Found"
		}
		return nil
	})})
	spec, err := structpb.NewStruct(map[string]any{"image": busybox, "network": "none", "command": "exec sleep 100000"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	name := "run-" + strings.TrimPrefix(digestOf(randomTar(t)), "sha256:")[:12]
	id, started, ended := name+"/forgotten/c1", make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := e.Run(ctx, executor.Attempt{
			ID: id, Identity: executor.Identity{Run: name, Task: "forgotten", Node: "n", Index: -1, Claim: 1},
			Spec: spec, Stdout: io.Discard, Stderr: io.Discard,
		}, func() { close(started) })
		ended <- err
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-started:
	case err := <-ended:
		ended <- nil
		t.Fatal("the container has not started:", err)
	}
	in, err := e.Enter(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	forgets := writes(func() { forgotten.Store(true) })
	status, err := in.Exec(t.Context(), executor.Command{Args: []string{"echo", "running"}, Stdout: forgets})
	if err == nil || status.Code != executor.CodeUnknown {
		t.Errorf("%+v, %v; want %d and an error", status, err, executor.CodeUnknown)
	}
}
