package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/dev/processes"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// batched is the number of instances of a batched fan-out.
	batched = 20_000
	// printed is how much a task prints, in bytes.
	printed = 100_000_000
)

func chainPairs() []pair {
	return []pair{
		{"chain of 200 `true`; on the right by hand", 200, " a hop", chain(200), byHand(chainByHand, 200)},
		{"chain of 2,000 `true`; on the right 10 of 200, ours too", 2000, " a hop", chain(2000), repeat(10, chain(200))},
	}
}

func fanOutPairs() []pair {
	return []pair{
		{"fan-out of 1,000 `true`; on the right by hand", 1000, " a task", wide(1000), byHand(fanOutByHand, 1000)},
		{"fan-out of 5,000 `true`; on the right 25 of 200, ours too", 5000, " a task", wide(5000), repeat(25, wide(200))},
	}
}

func batchPairs() []pair {
	// Each instance takes a core, so that no more run at once than with xargs.
	each := task("true")
	each.Resources, each.Parallel, each.Batch = nil, structpb.NewNumberValue(batched), structpb.NewStringValue("auto")
	return []pair{{"20,000 instances of `true`, `batch: auto`; on the right `xargs -n1 sh -c true`", batched, " a task", timed(oneTask("batch", each)), xargs}}
}

func logPairs() []pair {
	command := fmt.Sprintf("yes 'a line of output that is of no interest to anyone' | head -c %d", printed)
	return []pair{{"100 MB of output; on the right into a file", 1, "", timed(oneTask("logs", task(command))), intoFile(command)}}
}

// repeat returns a measurement that adds up n measurements.
func repeat(n int, measure measurement) measurement {
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

func oneTask(name string, t *v1.TaskDefinition) *v1.Definition {
	return &v1.Definition{Name: name, Tasks: map[string]*v1.TaskDefinition{"t": t}}
}

// run submits a definition, and returns the state of the run when it has completed, and how long that took.
func (y *cluster) run(ctx context.Context, def *v1.Definition) (*historyv1.StatusResponse, time.Duration, error) {
	began := time.Now()
	run, err := y.conn.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:        names.NewRunID(def.GetName()),
		TaskQueue: names.ControlQueue,
	}, names.RunWorkflow, &historyv1.RunInput{Definition: def})
	if err != nil {
		return nil, 0, err
	}
	var status historyv1.StatusResponse
	took, err := y.await(ctx, run, began)
	if err == nil {
		err = run.Get(ctx, &status)
	}
	if state := status.GetRun().GetState(); err == nil && state != v1.RunCompleted {
		err = fmt.Errorf("run %s is %s", run.GetID(), state)
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
		if err := processes.Pause(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

func chain(n int) measurement {
	def := oneTask("chain", task("true"))
	last := "t"
	for i := 1; i < n; i++ {
		next := fmt.Sprintf("t%d", i)
		def.Tasks[next] = task("true", last)
		last = next
	}
	return timed(def)
}

func wide(n int) measurement {
	def := &v1.Definition{Name: "wide", Tasks: map[string]*v1.TaskDefinition{}}
	for i := range n {
		def.Tasks[fmt.Sprintf("t%d", i)] = task("true")
	}
	return timed(def)
}

func timed(def *v1.Definition) measurement {
	return func(ctx context.Context, y *cluster) (time.Duration, error) {
		_, took, err := y.run(ctx, def)
		return took, err
	}
}

func byHand(workflow any, n int) measurement {
	return func(ctx context.Context, y *cluster) (time.Duration, error) {
		began := time.Now()
		run, err := y.conn.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: workflowQueue}, workflow, n, "true")
		if err != nil {
			return 0, err
		}
		return y.await(ctx, run, began)
	}
}

// xargs starts as many shells as a batched fan-out has instances, one on each core at a time.
func xargs(ctx context.Context, _ *cluster) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, "xargs", fmt.Sprintf("-P%d", runtime.NumCPU()), "-n1", "sh", "-c", "true")
	cmd.Stdin = bytes.NewReader(bytes.Repeat([]byte("x\n"), batched))
	began := time.Now()
	err := cmd.Run()
	return time.Since(began), err
}

// intoFile returns a measurement of a shell that writes the output of a command to a file.
func intoFile(command string) measurement {
	return func(ctx context.Context, _ *cluster) (time.Duration, error) {
		dir, err := os.MkdirTemp("", "switchyard-bench-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
		file, err := os.Create(filepath.Join(dir, "output"))
		if err != nil {
			return 0, err
		}
		defer file.Close()
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Stdout = file
		began := time.Now()
		err = cmd.Run()
		return time.Since(began), err
	}
}
