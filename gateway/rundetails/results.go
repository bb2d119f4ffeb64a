package rundetails

import (
	"cmp"
	"context"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/store"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// wholeInstanceBytes bounds the instances that are shown whole with a task. Further instances are shown without
	// streams and outputs.
	wholeInstanceBytes = 1 << 20
	// resultsAtOnce is the number of results that are read concurrently from the store.
	resultsAtOnce = 16
)

// results completes tasks and instances with their results.
type results struct {
	reader *runview.Reader
	store  *store.Store
	log    *slog.Logger
}

// all returns tasks of a run with their whole results, or, if brief is set, without streams and outputs.
func (r results) all(ctx context.Context, v *runview.View, tasks []string, brief bool) []*v1.Task {
	all := make([]*v1.Task, len(tasks))
	var group errgroup.Group
	group.SetLimit(resultsAtOnce)
	for i, name := range tasks {
		if t := v.Tasks[name]; (t.Record == "" || brief) && t.Task.GetCount() == 0 {
			all[i] = r.task(ctx, v, name, brief)
			continue
		}
		group.Go(func() error {
			all[i] = r.task(ctx, v, name, brief)
			return nil
		})
	}
	_ = group.Wait() // no call returns an error
	return all
}

// task returns a task with its whole result. If the workflow holds only part of the result, the rest comes from the
// record in the store; without the record, task returns the part.
func (r results) task(ctx context.Context, v *runview.View, name string, brief bool) *v1.Task {
	run, t := v.Run.GetId(), v.Tasks[name]
	task := runview.CopyWithoutInstances(t.Task)
	task.CreatedAt, task.DeadLetteredAt = v.Run.GetCreatedAt(), runview.DeadLetteredAt(task)
	task.State, task.AssignedAt, task.StartedAt, task.Counts = t.Brief.State, t.Brief.AssignedAt, t.Brief.StartedAt, t.Brief.Counts
	task.Notice, task.Workload, task.LeaseUntil = t.Brief.Notice, t.Brief.Workload, t.LeaseUntil
	if brief {
		task.Result = t.Brief.GetResult()
	} else {
		task.Result = r.result(ctx, run, name, task.Result, t.Record)
	}
	size := 0
	for _, i := range r.firstInstances(ctx, v, name) {
		switch {
		case i == nil:
		case brief || size > wholeInstanceBytes:
			task.Instances = append(task.Instances, i.Brief)
		default:
			whole := r.instance(ctx, run, name, i)
			size += proto.Size(whole)
			task.Instances = append(task.Instances, whole)
		}
	}
	return task
}

// firstInstances returns the instances that are shown with a task. Those of a large fan-out are not in the view and
// are queried from the children of the run. If the children do not answer, the task is shown without instances.
func (r results) firstInstances(ctx context.Context, v *runview.View, name string) []*runview.InstanceView {
	t := v.Tasks[name]
	if len(t.Instances) > 0 {
		return t.Instances[:min(len(t.Instances), runview.ShownInstances)]
	}
	var first []*runview.InstanceView
	for at := 0; len(first) < runview.ShownInstances; {
		some, err := r.reader.Instances(ctx, v, name, at, runview.ShownInstances-len(first))
		if err != nil {
			r.log.Warn("the instances of a task cannot be read", "run", v.Run.GetId(), "task", name, "error", err)
		}
		if err != nil || len(some) == 0 {
			break
		}
		first = append(first, some...)
		at = int(some[len(some)-1].Instance.GetIndex()) + 1
	}
	return first
}

// instance returns an instance with its whole result.
func (r results) instance(ctx context.Context, run, task string, i *runview.InstanceView) *v1.Instance {
	whole := runview.BriefInstance(i.Instance)
	whole.State, whole.AssignedAt, whole.StartedAt, whole.Attempts = i.Brief.State, i.Brief.AssignedAt, i.Brief.StartedAt, i.Instance.GetAttempts()
	whole.Notice, whole.Workload, whole.LeaseUntil = i.Brief.Notice, i.Brief.Workload, i.LeaseUntil
	whole.Result = r.result(ctx, run, names.InstanceName(task, int(i.Instance.GetIndex())), i.Instance.GetResult(), i.Record)
	return whole
}

// result returns the result that stored returns as clients see it.
func (r results) result(ctx context.Context, run, name string, part *v1.TaskResult, record string) *v1.TaskResult {
	part = r.stored(ctx, run, name, part, record)
	if part == nil {
		return &v1.TaskResult{ExitCode: -1, Output: &structpb.Struct{}}
	}
	if part.Output == nil || len(part.GetArtifacts()) > 0 {
		part = proto.CloneOf(part)
		part.Output, part.Artifacts = cmp.Or(part.Output, &structpb.Struct{}), runview.ShownArtifacts(part)
	}
	return part
}

// stored returns the result in the store's record, or the workflow's part of it if there is no readable record.
func (r results) stored(ctx context.Context, run, name string, part *v1.TaskResult, record string) *v1.TaskResult {
	if record != "" {
		kept, err := r.store.GetResult(ctx, record)
		if err != nil {
			r.log.Warn("the result of a task cannot be read", "run", run, "task", name, "error", err)
		} else if kept.GetResult() != nil {
			part = kept.Result
		}
	}
	return part
}
