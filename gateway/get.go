package gateway

import (
	"context"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// defaultTaskPage is how many tasks a page holds when the request does not say.
	defaultTaskPage = 1000
	// taskPageBytes is where a page is cut; a page holds at least one task.
	taskPageBytes = 3 << 20
)

// GetRun returns a run with a page of its tasks, streams and outputs included.
func (g *Gateway) GetRun(ctx context.Context, req *connect.Request[v1.GetRunRequest]) (*connect.Response[v1.GetRunResponse], error) {
	id, err := g.resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	first, err := decodeTaskToken(req.Msg.GetPageToken(), id)
	if err != nil {
		return nil, err
	}
	v, err := g.reader.read(ctx, id)
	if err != nil {
		return nil, err
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultTaskPage
	}
	res := &v1.GetRunResponse{Run: proto.CloneOf(v.run)}
	res.Run.Tasks = map[string]*v1.Task{}
	start, _ := slices.BinarySearch(v.names, first)
	size := 0
	for _, name := range v.names[start:] {
		if len(res.Run.Tasks) == limit {
			res.NextPageToken = encodeTaskToken(id, name)
			break
		}
		task := g.fill(ctx, id, name, v.tasks[name])
		if size += proto.Size(task); size > taskPageBytes && len(res.Run.Tasks) > 0 {
			// Read once more with the next page, which starts with it.
			res.NextPageToken = encodeTaskToken(id, name)
			break
		}
		res.Run.Tasks[name] = task
	}
	return connect.NewResponse(res), nil
}

// fill returns a task with its whole result, which is in the store where the
// workflow holds only part of it. Without the record the part has to do.
func (g *Gateway) fill(ctx context.Context, run, name string, t *taskView) *v1.Task {
	task := proto.CloneOf(t.task)
	task.State, task.AssignedAt, task.StartedAt = t.brief.State, t.brief.AssignedAt, t.brief.StartedAt
	if t.record != "" {
		var record v1.ExecuteResponse
		if err := g.store.GetMessage(ctx, t.record, &record); err != nil {
			g.log.Warn("the result of a task cannot be read", "run", run, "task", name, "error", err)
		} else if record.GetResult() != nil {
			task.Result = record.Result
		}
	}
	if task.Result == nil {
		task.Result = &v1.TaskResult{ExitCode: -1}
	}
	if task.Result.Output == nil {
		task.Result.Output = &structpb.Struct{}
	}
	return task
}
