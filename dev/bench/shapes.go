package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// shape is a workload to measure with Switchyard and with hand-written code. A measurement is divided by per before it
// is printed.
type shape struct {
	name         string
	per          int
	unit         string
	ours, theirs func(context.Context, *cluster) (time.Duration, error)
}

const napTime = 100 * time.Millisecond

func shapes() []shape {
	return []shape{
		{"chain of 200 `true`", 200, " a hop", chain(200), byHand(chainByHand, 200)},
		{"chain of 200 `true`; on the right on a fixed queue, without placement", 200, " a hop", chain(200), fixed(200)},
		{"fan-out of 1,000 `true`", 1000, " a task", wide(1000), byHand(fanOutByHand, 1000)},
		{"100 runs of one task", 100, " a run", manyRuns(100), manyByHand(100)},
		{"start to first task", 20, "", repeat(20, firstTask), repeat(20, firstTaskByHand)},
		{"cancel to dead process", 10, "", repeat(10, cancel), repeat(10, cancelByHand)},
		{"retry after a 100 ms back-off, lateness", 10, "", lateness(10), latenessByHand(10)},
		{"one DAG of 5,000 `true`, wide; on the right 25 of 200, ours too", 5000, " a task", wide(5000), repeat(25, wide(200))},
	}
}

// repeat returns a measurement that adds up n measurements.
func repeat(n int, measure func(context.Context, *cluster) (time.Duration, error)) func(context.Context, *cluster) (time.Duration, error) {
	return func(ctx context.Context, y *cluster) (sum time.Duration, err error) {
		for range n {
			d, err := measure(ctx, y)
			if err != nil {
				return 0, err
			}
			sum += d
		}
		return sum, nil
	}
}

func task(command string, parents ...string) *v1.TaskDefinition {
	spec, _ := structpb.NewStruct(map[string]any{"command": command}) // a string is always a valid value
	return &v1.TaskDefinition{
		Type: "shell", Spec: spec, DependsOn: parents,
		Resources: &v1.Resources{Cores: proto.Float64(0)},
	}
}

func (y *cluster) submit(ctx context.Context, def *v1.Definition) (client.WorkflowRun, error) {
	return y.conn.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:        names.NewRunID(def.GetName()),
		TaskQueue: names.ControlQueue,
	}, names.RunWorkflow, &v1.RunInput{Definition: def})
}

func (y *cluster) run(ctx context.Context, def *v1.Definition) (*v1.StatusResponse, time.Duration, error) {
	began := time.Now()
	run, err := y.submit(ctx, def)
	if err != nil {
		return nil, 0, err
	}
	var status v1.StatusResponse
	took, err := y.await(ctx, run, began)
	if err == nil {
		err = run.Get(ctx, &status)
	}
	return &status, took, err
}

// await waits for the end of a workflow and returns when that was, relative to began. It polls because a long poll
// occasionally misses the end.
func (y *cluster) await(ctx context.Context, run client.WorkflowRun, began time.Time) (time.Duration, error) {
	for {
		d, err := y.conn.DescribeWorkflowExecution(ctx, run.GetID(), "")
		if err != nil {
			return 0, err
		}
		if end := d.GetWorkflowExecutionInfo().GetCloseTime(); end != nil {
			return end.AsTime().Sub(began), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func chain(n int) func(context.Context, *cluster) (time.Duration, error) {
	def := &v1.Definition{Name: "chain", Tasks: map[string]*v1.TaskDefinition{"t0": task("true")}}
	for i := 1; i < n; i++ {
		def.Tasks[fmt.Sprintf("t%d", i)] = task("true", fmt.Sprintf("t%d", i-1))
	}
	return timed(def)
}

func wide(n int) func(context.Context, *cluster) (time.Duration, error) {
	return timed(wideDefinition(n))
}

// wideDefinition returns a definition of n independent tasks.
func wideDefinition(n int) *v1.Definition {
	def := &v1.Definition{Name: "wide", Tasks: map[string]*v1.TaskDefinition{}}
	for i := range n {
		def.Tasks[fmt.Sprintf("t%d", i)] = task("true")
	}
	return def
}

func timed(def *v1.Definition) func(context.Context, *cluster) (time.Duration, error) {
	return func(ctx context.Context, y *cluster) (time.Duration, error) {
		_, took, err := y.run(ctx, def)
		return took, err
	}
}

func byHand(workflow any, n int) func(context.Context, *cluster) (time.Duration, error) {
	return func(ctx context.Context, y *cluster) (time.Duration, error) {
		began := time.Now()
		run, err := y.conn.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: workflowQueue}, workflow, n, "true")
		if err != nil {
			return 0, err
		}
		return y.await(ctx, run, began)
	}
}

func manyRuns(n int) func(context.Context, *cluster) (time.Duration, error) {
	def := &v1.Definition{Name: "one", Tasks: map[string]*v1.TaskDefinition{"t": task("true")}}
	return many(n, func(ctx context.Context, y *cluster) (client.WorkflowRun, error) { return y.submit(ctx, def) })
}

func manyByHand(n int) func(context.Context, *cluster) (time.Duration, error) {
	return many(n, func(ctx context.Context, y *cluster) (client.WorkflowRun, error) {
		return y.conn.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: workflowQueue}, chainByHand, 1, "true")
	})
}

func many(n int, start func(context.Context, *cluster) (client.WorkflowRun, error)) func(context.Context, *cluster) (time.Duration, error) {
	return func(ctx context.Context, y *cluster) (time.Duration, error) {
		began := time.Now()
		runs := make([]client.WorkflowRun, n)
		for i := range runs {
			var err error
			if runs[i], err = start(ctx, y); err != nil {
				return 0, err
			}
		}
		var last time.Duration
		for _, run := range runs {
			ended, err := y.await(ctx, run, began)
			if err != nil {
				return 0, err
			}
			last = max(last, ended)
		}
		return last, nil
	}
}

func firstTask(ctx context.Context, y *cluster) (time.Duration, error) {
	began := time.Now()
	status, _, err := y.run(ctx, &v1.Definition{Name: "first", Tasks: map[string]*v1.TaskDefinition{"t": task("true")}})
	if err != nil {
		return 0, err
	}
	return status.GetRun().GetTasks()["t"].GetStartedAt().AsTime().Sub(began), nil
}

func firstTaskByHand(ctx context.Context, y *cluster) (time.Duration, error) {
	began := time.Now()
	run, err := y.conn.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: workflowQueue}, chainByHand, 1, "true")
	if err != nil {
		return 0, err
	}
	if _, err := y.await(ctx, run, began); err != nil {
		return 0, err
	}
	var started time.Time
	err = run.Get(ctx, &started)
	return started.Sub(began), err
}

func cancel(ctx context.Context, y *cluster) (time.Duration, error) {
	return untilDead(ctx, y, func(command string) (client.WorkflowRun, error) {
		return y.submit(ctx, &v1.Definition{Name: "cancel", Tasks: map[string]*v1.TaskDefinition{"t": task(command)}})
	})
}

func cancelByHand(ctx context.Context, y *cluster) (time.Duration, error) {
	return untilDead(ctx, y, func(command string) (client.WorkflowRun, error) {
		return y.conn.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: workflowQueue}, chainByHand, 1, command)
	})
}

// untilDead measures the time from a cancellation to the death of the process.
func untilDead(ctx context.Context, y *cluster, start func(command string) (client.WorkflowRun, error)) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "switchyard-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "pid")
	run, err := start("echo $$ > " + file + ".new; mv " + file + ".new " + file + "; exec sleep 600")
	if err != nil {
		return 0, err
	}
	var pid int
	for pid == 0 {
		text, _ := os.ReadFile(file) // missing until the process has started
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		if err := pause(ctx); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	if err := y.conn.CancelWorkflow(ctx, run.GetID(), ""); err != nil {
		return 0, err
	}
	for syscall.Kill(pid, 0) == nil {
		if err := pause(ctx); err != nil {
			return 0, err
		}
	}
	took := time.Since(began)
	_, err = y.await(ctx, run, began)
	return took, err
}

func pause(ctx context.Context) error {
	time.Sleep(500 * time.Microsecond)
	return ctx.Err()
}

// lateness measures how late back-offs end: the time between the starts of a failing attempt and of the next one, minus
// the back-off. It includes the end of the first attempt and the dispatch of the second.
func lateness(n int) func(context.Context, *cluster) (time.Duration, error) {
	return late(n, func(ctx context.Context, y *cluster, command string) error {
		t := task(command)
		t.Retry = &v1.RetryPolicy{MaxRetries: proto.Int32(1), BackoffMs: proto.Int32(int32(napTime.Milliseconds()))}
		_, _, err := y.run(ctx, &v1.Definition{Name: "late", Tasks: map[string]*v1.TaskDefinition{"t": t}})
		return err
	})
}

func latenessByHand(n int) func(context.Context, *cluster) (time.Duration, error) {
	return late(n, func(ctx context.Context, y *cluster, command string) error {
		run, err := y.conn.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: workflowQueue}, retryByHand, napTime, command)
		if err != nil {
			return err
		}
		_, err = y.await(ctx, run, time.Now())
		return err
	})
}

// late runs a command n times that records its start times and fails the first time.
func late(n int, run func(ctx context.Context, y *cluster, command string) error) func(context.Context, *cluster) (time.Duration, error) {
	return func(ctx context.Context, y *cluster) (time.Duration, error) {
		dir, err := os.MkdirTemp("", "switchyard-bench-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
		var sum time.Duration
		for i := range n {
			file := filepath.Join(dir, strconv.Itoa(i))
			if err := run(ctx, y, fmt.Sprintf("date +%%s%%N >> %s; test $(wc -l < %s) -ge 2", file, file)); err != nil {
				return 0, err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return 0, err
			}
			stamps := strings.Fields(string(text))
			if len(stamps) != 2 {
				return 0, fmt.Errorf("%d attempts instead of 2", len(stamps))
			}
			first, errFirst := strconv.ParseInt(stamps[0], 10, 64)
			second, errSecond := strconv.ParseInt(stamps[1], 10, 64)
			if err := errors.Join(errFirst, errSecond); err != nil {
				return 0, err
			}
			sum += time.Duration(second-first) - napTime
		}
		return sum, nil
	}
}
