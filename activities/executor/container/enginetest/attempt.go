package enginetest

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/dev/testneeds"
)

// attemptPatience bounds how long an attempt may take to start, or to end.
const attemptPatience = 5 * time.Minute

var serial atomic.Int64

// Attempt returns an attempt of a task on a node of its own, and its output. It uses the image with a shell and no network,
// unless the fields of its spec name others.
func Attempt(t testing.TB, task string, fields map[string]any) (a executor.Attempt, out, errs *testneeds.Output) {
	t.Helper()
	run := fmt.Sprintf("test-%d-%d", time.Now().UnixNano(), serial.Add(1))
	all := map[string]any{"image": Image(t), "network": "none"}
	maps.Copy(all, fields)
	spec, err := structpb.NewStruct(all)
	if err != nil {
		t.Fatal(err)
	}
	out, errs = &testneeds.Output{}, &testneeds.Output{}
	return executor.Attempt{
		ID: run + "/" + task + "/c1", Identity: executor.Identity{Run: run, Task: task, Node: "node-" + run, Index: -1, Claim: 1},
		Spec: spec, Streams: executor.Streams{Stdout: out, Stderr: errs}, Ending: executor.Ending{Grace: time.Minute},
	}, out, errs
}

// Outcome is the outcome of an attempt.
type Outcome struct {
	executor.Result
	Err error
}

// Begin starts an attempt and returns a channel that receives its outcome.
func Begin(t testing.TB, ctx context.Context, e executor.Executor, a executor.Attempt) chan Outcome {
	t.Helper()
	started, ended := make(chan struct{}), make(chan Outcome, 1)
	go func() {
		r, err := e.Run(ctx, a, func() { close(started) })
		ended <- Outcome{r, err}
	}()
	select {
	case <-started:
	case r := <-ended:
		select {
		case <-started: // a brief program has ended already
			ended <- r
		default:
			t.Fatalf("it has not started: %+v, %v", r.Result, r.Err)
		}
	case <-time.After(attemptPatience):
		t.Fatal("it does not start")
	}
	return ended
}

// End waits for the outcome of an attempt.
func End(t testing.TB, ended <-chan Outcome) Outcome {
	t.Helper()
	select {
	case r := <-ended:
		return r
	case <-time.After(2 * attemptPatience):
		t.Fatal("it does not end")
		return Outcome{}
	}
}

// Left returns the containers of an attempt.
func Left(t testing.TB, id string) []container.Summary {
	t.Helper()
	found, err := Engine(t).ContainerList(context.Background(), container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("label", "switchyard.id="+id)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
