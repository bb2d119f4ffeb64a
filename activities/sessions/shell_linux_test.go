package sessions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/executortest"
	"switchyard/activities/executor/shell"
	"switchyard/activities/sessions/wire"
)

// TestSessionsImplementInside checks that entering an attempt over streams behaves as on its node.
func TestSessionsImplementInside(t *testing.T) {
	e, err := shell.New(shell.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	executortest.RunInside(t, executortest.InsideHarness{
		Enter: func(t *testing.T) executor.Inside {
			id := fmt.Sprintf("%s/%d/c1", t.Name(), time.Now().UnixNano())
			startTask(t, e, id, dir)
			in, err := e.Enter(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return startNode(t, in).inside()
		},
		Dir: func(t *testing.T) string { return dir },
		IsRefusal: func(err error) bool {
			_, refused := errors.AsType[*wire.RefusedError](err)
			_, local := errors.AsType[*executor.Refusal](err)
			return refused || local
		},
		Env: [2]string{"GREETING", "hello"},
	})
}

// startTask starts a task that runs until the end of the test.
func startTask(t *testing.T, e *shell.Executor, id, dir string) {
	t.Helper()
	task, err := structpb.NewStruct(map[string]any{"command": "while :; do sleep 0.1; done"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	started := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		if _, err := e.Run(ctx, executor.Attempt{ID: id, Spec: task, Dirs: executor.Dirs{Base: dir}, Env: map[string]string{"GREETING": "hello"}, Ending: executor.Ending{Grace: time.Second}}, func() { close(started) }); err != nil {
			t.Errorf("the task: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	<-started
	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := e.Enter(t.Context(), id); err == nil {
			return
		} else if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}
