package gateway

import (
	"context"
	"slices"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/gateway/paging"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// defaultTaskPage is the number of tasks on a page if the request names no size.
	defaultTaskPage = 1000
	// wholeInstanceBytes bounds the instances that are shown whole with a task. Further instances are shown without
	// streams and outputs.
	wholeInstanceBytes = 1 << 20
	// resultsAtOnce is the number of results that are read concurrently from the store.
	resultsAtOnce = 16
)

// GetRun returns a run with a page of its tasks, including their streams and outputs, and the first instances of
// fanned-out tasks.
func (g *Gateway) GetRun(ctx context.Context, req *connect.Request[v1.GetRunRequest]) (*connect.Response[v1.GetRunResponse], error) {
	id, err := g.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	first, err := pages.DecodeTask(req.Msg.GetPageToken(), id)
	if err != nil {
		return nil, err
	}
	v, err := g.reader.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultTaskPage
	}
	res := &v1.GetRunResponse{Run: v.Header()}
	res.Run.Context, res.Run.Input, res.Run.Tasks = v.Run.GetContext(), v.Run.GetInput(), map[string]*v1.Task{}
	all := v.KnownTasks(req.Msg.GetTasks())
	start, _ := slices.BinarySearch(all, first)
	size := 0
	for names := all[start:]; len(names) > 0; {
		n := min(len(names), resultsAtOnce)
		for i, task := range g.fillAll(ctx, v, names[:n], req.Msg.GetBrief()) {
			size += proto.Size(task)
			// A task that does not fit is read again with the next page.
			if len(res.Run.Tasks) == limit || size > paging.MaxBytes && len(res.Run.Tasks) > 0 {
				res.NextPageToken = pages.EncodeTask(id, names[i])
				return connect.NewResponse(res), nil
			}
			res.Run.Tasks[names[i]] = task
		}
		names = names[n:]
	}
	return connect.NewResponse(res), nil
}

// fillAll returns tasks of a run with their whole results, or, if brief is set, without streams and outputs.
func (g *Gateway) fillAll(ctx context.Context, v *runview.View, tasks []string, brief bool) []*v1.Task {
	all := make([]*v1.Task, len(tasks))
	var group errgroup.Group
	group.SetLimit(resultsAtOnce)
	for i, name := range tasks {
		if t := v.Tasks[name]; (t.Record == "" || brief) && t.Task.GetCount() == 0 {
			all[i] = g.fill(ctx, v, name, brief)
			continue
		}
		group.Go(func() error {
			all[i] = g.fill(ctx, v, name, brief)
			return nil
		})
	}
	_ = group.Wait() // no call returns an error
	return all
}

// fill returns a task with its whole result. If the workflow holds only part of the result, the rest comes from the
// record in the store; without the record, fill returns the part.
func (g *Gateway) fill(ctx context.Context, v *runview.View, name string, brief bool) *v1.Task {
	run, t := v.Run.GetId(), v.Tasks[name]
	task := runview.CopyWithoutInstances(t.Task)
	task.CreatedAt, task.DeadLetteredAt = v.Run.GetCreatedAt(), runview.DeadLetteredAt(task)
	task.State, task.AssignedAt, task.StartedAt, task.Counts = t.Brief.State, t.Brief.AssignedAt, t.Brief.StartedAt, t.Brief.Counts
	task.Notice = t.Brief.Notice
	if brief {
		task.Result = t.Brief.GetResult()
	} else {
		task.Result = g.result(ctx, run, name, task.Result, t.Record)
	}
	size := 0
	for _, i := range g.firstInstances(ctx, v, name) {
		switch {
		case i == nil:
		case brief || size > wholeInstanceBytes:
			task.Instances = append(task.Instances, i.Brief)
		default:
			whole := g.fillInstance(ctx, run, name, i)
			size += proto.Size(whole)
			task.Instances = append(task.Instances, whole)
		}
	}
	return task
}

// firstInstances returns the instances that are shown with a task. Those of a large fan-out are not in the view and
// are queried from the children of the run. If the children do not answer, the task is shown without instances.
func (g *Gateway) firstInstances(ctx context.Context, v *runview.View, name string) []*runview.InstanceView {
	t := v.Tasks[name]
	if len(t.Instances) > 0 {
		return t.Instances[:min(len(t.Instances), runview.ShownInstances)]
	}
	var first []*runview.InstanceView
	for at := 0; len(first) < runview.ShownInstances; {
		some, err := g.reader.Instances(ctx, v, name, at, runview.ShownInstances-len(first))
		if err != nil {
			g.log.Warn("the instances of a task cannot be read", "run", v.Run.GetId(), "task", name, "error", err)
		}
		if err != nil || len(some) == 0 {
			break
		}
		first = append(first, some...)
		at = int(some[len(some)-1].Instance.GetIndex()) + 1
	}
	return first
}

// fillInstance returns an instance with its whole result.
func (g *Gateway) fillInstance(ctx context.Context, run, task string, i *runview.InstanceView) *v1.Instance {
	whole := runview.BriefInstance(i.Instance)
	whole.State, whole.AssignedAt, whole.StartedAt, whole.Attempts = i.Brief.State, i.Brief.AssignedAt, i.Brief.StartedAt, i.Instance.GetAttempts()
	whole.Notice = i.Brief.Notice
	whole.Result = g.result(ctx, run, names.InstanceName(task, int(i.Instance.GetIndex())), i.Instance.GetResult(), i.Record)
	return whole
}

// result returns the result in the store's record, or the workflow's part of it if there is no readable record.
func (g *Gateway) result(ctx context.Context, run, name string, part *v1.TaskResult, record string) *v1.TaskResult {
	if record != "" {
		kept, err := g.store.GetResult(ctx, record)
		if err != nil {
			g.log.Warn("the result of a task cannot be read", "run", run, "task", name, "error", err)
		} else if kept.GetResult() != nil {
			part = kept.Result
		}
	}
	if part == nil {
		return &v1.TaskResult{ExitCode: -1, Output: &structpb.Struct{}}
	}
	if part.Output == nil {
		part = proto.CloneOf(part)
		part.Output = &structpb.Struct{}
	}
	return part
}
