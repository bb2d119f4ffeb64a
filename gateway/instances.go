package gateway

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// defaultInstancePage is how many instances a page holds when the request does not say.
	defaultInstancePage = 1000
	// instancesAtOnce is how many instances are read at once for a page that is cut by its size.
	instancesAtOnce = 1000
)

// ListInstances lists the instances of a task that has fanned out, by number, with their whole results. Those of a
// large one are with the children of the run that carry them.
func (g *Gateway) ListInstances(ctx context.Context, req *connect.Request[v1.ListInstancesRequest]) (*connect.Response[v1.ListInstancesResponse], error) {
	id, err := g.resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	task := req.Msg.GetTask()
	pages, err := listOf(req.Msg)
	if err != nil {
		return nil, err
	}
	at, err := pages.decodeInstance(req.Msg.GetPageToken(), id, task)
	if err != nil {
		return nil, err
	}
	if req.Msg.GetPageToken() == "" {
		at = int(req.Msg.GetFirst())
	}
	v, err := g.reader.read(ctx, id)
	if err != nil {
		return nil, err
	}
	if v.tasks[task] == nil {
		return nil, v.noTask(task)
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultInstancePage
	}
	items := g.itemsOf(ctx, v, task)
	res, size := &v1.ListInstancesResponse{}, 0
	for len(res.Items) < limit {
		some, err := g.reader.instances(ctx, v, task, at, min(limit-len(res.Items), instancesAtOnce))
		if err != nil {
			return nil, err
		}
		if len(some) == 0 {
			return connect.NewResponse(res), nil
		}
		for _, i := range some {
			whole := g.fillInstance(ctx, id, task, i)
			if index := int(whole.GetIndex()); index < len(items) {
				whole.Item = shortItem(items[index])
			}
			if size += proto.Size(whole); size > taskPageBytes && len(res.Items) > 0 {
				res.NextPageToken = pages.encodeInstance(id, task, int(i.instance.GetIndex()))
				return connect.NewResponse(res), nil
			}
			res.Items = append(res.Items, whole)
			at = int(i.instance.GetIndex()) + 1
		}
	}
	if at < int(v.tasks[task].task.GetCount()) {
		res.NextPageToken = pages.encodeInstance(id, task, at)
	}
	return connect.NewResponse(res), nil
}

// instances returns instances of a task from a number on, by number, at most so many; none: there are no more. What
// the view does not hold the run is asked for, or the child that it names.
func (r *reader) instances(ctx context.Context, v *view, task string, from, limit int) ([]*instanceView, error) {
	t := v.tasks[task]
	var found []*instanceView
	for from < int(t.task.GetCount()) && len(found) < limit {
		if i := t.instance(from); i != nil {
			found = append(found, i)
			from++
			continue
		}
		if len(found) > 0 {
			break // the rest with the next call
		}
		asked, next, err := r.askHolder(ctx, v, task, from, limit)
		if err != nil {
			return nil, fmt.Errorf("read the instances of task %s of run %s: %w", task, v.run.GetId(), err)
		}
		if len(asked) == 0 && next <= from {
			break
		}
		found, from = asked, max(next, from)
	}
	return found, nil
}

// askHolder asks the workflow that holds an instance for it and those after it.
func (r *reader) askHolder(ctx context.Context, v *view, task string, from, limit int) (found []*instanceView, next int, err error) {
	holder, stored := v.run.GetId(), false
	req := &v1.InstancesRequest{Task: task, From: int32(from), Limit: int32(limit)}
	answer, err := r.queryInstances(ctx, holder, req)
	if err != nil {
		return nil, 0, err
	}
	if answer.GetChild() != "" {
		open := answer.GetOpen()
		holder, err = answer.GetChild(), store.ErrNotFound
		if !open { // else what it has left, if anything, is of an earlier opening
			answer, err = r.storedInstances(ctx, holder, req)
			stored = err == nil
		}
		if errors.Is(err, store.ErrNotFound) { // it goes on still
			answer, err = r.queryInstances(ctx, holder, req)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	var running map[string]runningAttempt
	if !stored {
		if running, err = r.runningIn(ctx, holder); err != nil {
			return nil, 0, err
		}
	}
	for _, i := range answer.GetInstances() {
		brief := briefInstance(i)
		if at, ok := running[names.InstanceName(task, int(i.GetIndex()))]; ok && brief.State == v1.TaskAssigned {
			brief.State, brief.AssignedAt, brief.StartedAt = v1.TaskRunning, at.assigned, at.started
		}
		found = append(found, &instanceView{
			instance: i, brief: brief, record: answer.GetRecords()[i.GetIndex()], claim: answer.GetClaims()[i.GetIndex()],
		})
	}
	return found, int(answer.GetNext()), nil
}

// storedInstances reads the instances that a child which has ended left in the store: to ask it
// would have its whole history replayed.
func (r *reader) storedInstances(ctx context.Context, child string, req *v1.InstancesRequest) (*v1.InstancesResponse, error) {
	of, ok := names.ParseFanOutID(child)
	if !ok {
		return nil, fmt.Errorf("%q is no child of a run", child)
	}
	var kept v1.StatusResponse
	if err := r.store.GetMessage(ctx, store.StatusKey(child, of.Generation), &kept); err != nil {
		return nil, err
	}
	res := &v1.InstancesResponse{Records: map[int32]string{}, Claims: map[int32]int32{}, Next: req.GetFrom()}
	for _, i := range kept.GetRun().GetTasks()[req.GetTask()].GetInstances() {
		if i.GetIndex() < req.GetFrom() || len(res.Instances) == int(req.GetLimit()) {
			continue
		}
		name := names.InstanceName(req.GetTask(), int(i.GetIndex()))
		res.Instances = append(res.Instances, i)
		res.Records[i.GetIndex()], res.Claims[i.GetIndex()] = kept.GetRecords()[name], kept.GetClaims()[name]
		res.Next = i.GetIndex() + 1
	}
	return res, nil
}

// runningIn are the attempts that run for a workflow, by task or instance.
func (r *reader) runningIn(ctx context.Context, workflow string) (map[string]runningAttempt, error) {
	desc, err := r.client.DescribeWorkflowExecution(ctx, workflow, "")
	if err != nil {
		return nil, err
	}
	running := map[string]runningAttempt{}
	for id, attempt := range runningAttempts(desc.GetPendingActivities()) {
		name, _, _ := names.ParseAttemptID(id)
		running[name] = attempt
	}
	return running, nil
}

// queryInstances asks a workflow for instances. A workflow that does not answer in time is asked again until patience is
// over.
func (r *reader) queryInstances(ctx context.Context, workflow string, req *v1.InstancesRequest) (*v1.InstancesResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		answer := &v1.InstancesResponse{}
		err := r.query(ctx, workflow, names.InstancesQuery, req, answer)
		if err == nil || codeOf(err) != connect.CodeDeadlineExceeded || ctx.Err() != nil {
			return answer, err
		}
	}
}
