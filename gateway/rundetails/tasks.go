package rundetails

import (
	"context"
	"errors"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/artifacts"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// defaultTaskPage is the number of tasks on a page if the request names no size.
const defaultTaskPage = 1000

// tasks returns runs with their tasks.
type tasks struct {
	index   *runindex.Index
	reader  *runview.Reader
	results results
	library *artifacts.Library
}

// GetRun returns a run with a page of its tasks, including their streams and outputs, and the first instances of
// fanned-out tasks.
func (t tasks) GetRun(ctx context.Context, req *connect.Request[v1.GetRunRequest]) (*connect.Response[v1.GetRunResponse], error) {
	id, err := t.index.Resolve(ctx, req.Msg.GetId())
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
	v, err := t.reader.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultTaskPage
	}
	res := &v1.GetRunResponse{Run: v.Header()}
	if s := res.Run.GetSource(); s != nil && s.GetDigest() == "" { // from git
		found, err := t.library.Find(ctx, storekey.Source(id))
		if err == nil {
			res.Run.Source = found
		} else if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	res.Run.Context, res.Run.Input, res.Run.Tasks = v.Run.GetContext(), v.Run.GetInput(), map[string]*v1.Task{}
	all := v.KnownTasks(req.Msg.GetTasks())
	start, _ := slices.BinarySearch(all, first)
	size := 0
	for names := all[start:]; len(names) > 0; {
		n := min(len(names), resultsAtOnce)
		for i, task := range t.results.all(ctx, v, names[:n], req.Msg.GetBrief()) {
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

// ListRunTasks lists the tasks of a run by name.
func (t tasks) ListRunTasks(ctx context.Context, req *connect.Request[v1.ListRunTasksRequest]) (*connect.Response[v1.ListRunTasksResponse], error) {
	m := req.Msg
	id, err := t.index.Resolve(ctx, m.GetId())
	if err != nil {
		return nil, err
	}
	pages, err := paging.ListOf(m)
	if err != nil {
		return nil, err
	}
	first, err := pages.DecodeTask(m.GetPageToken(), id)
	if err != nil {
		return nil, err
	}
	v, err := t.reader.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	limit := int(m.GetPageSize())
	if limit == 0 {
		limit = defaultTaskPage
	}
	all := slices.DeleteFunc(slices.Clone(v.KnownTasks(nil)), func(name string) bool {
		return m.GetState() != "" && v.Tasks[name].Brief.GetState() != m.GetState()
	})
	res := &v1.ListRunTasksResponse{Total: int32(len(all))}
	start, _ := slices.BinarySearch(all, first)
	size := 0
	for some := all[start:]; len(some) > 0; {
		n := min(len(some), resultsAtOnce)
		for i, task := range t.results.all(ctx, v, some[:n], m.GetBrief()) {
			size += proto.Size(task)
			// A task that does not fit is read again with the next page.
			if len(res.Items) == limit || size > paging.MaxBytes && len(res.Items) > 0 {
				res.NextPageToken = pages.EncodeTask(id, some[i])
				return connect.NewResponse(res), nil
			}
			task.Name = &some[i]
			res.Items = append(res.Items, task)
		}
		some = some[n:]
	}
	return connect.NewResponse(res), nil
}

// GetRunTask returns a task or instance of a run with its whole result.
func (t tasks) GetRunTask(ctx context.Context, req *connect.Request[v1.GetRunTaskRequest]) (*connect.Response[v1.GetRunTaskResponse], error) {
	id, err := t.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	v, err := t.reader.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	name, index, isInstance := names.ParseInstanceName(req.Msg.GetTask())
	if !isInstance {
		name = req.Msg.GetTask()
	}
	if v.Tasks[name] == nil {
		return nil, v.NoTask(name)
	}
	if !isInstance {
		task := t.results.task(ctx, v, name, false)
		task.Name = &name
		return connect.NewResponse(&v1.GetRunTaskResponse{Task: task}), nil
	}
	found, err := t.reader.Instances(ctx, v, name, index, 1)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || int(found[0].Instance.GetIndex()) != index {
		return nil, rpcerror.NotFound("task %s of run %s has no instance %d; it has %d", name, id, index, v.Tasks[name].Task.GetCount())
	}
	return connect.NewResponse(&v1.GetRunTaskResponse{Instance: t.results.instance(ctx, id, name, found[0])}), nil
}
