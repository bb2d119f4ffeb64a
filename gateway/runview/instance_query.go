package runview

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Instances returns up to limit instances of a task, by number and starting at from, or none if there are no more. It
// queries the run, or the child that the run refers to, for instances that are not in the view.
func (r *Reader) Instances(ctx context.Context, v *View, task string, from, limit int) ([]*InstanceView, error) {
	t := v.Tasks[task]
	var found []*InstanceView
	for from < int(t.Task.GetCount()) && len(found) < limit {
		if i := t.instance(from); i != nil {
			found = append(found, i)
			from++
			continue
		}
		if len(found) > 0 {
			break // the next call returns the rest
		}
		asked, next, err := r.queryHolder(ctx, v, task, from, limit)
		if err != nil {
			return nil, fmt.Errorf("read the instances of task %s of run %s: %w", task, v.Run.GetId(), err)
		}
		if len(asked) == 0 && next <= from {
			break
		}
		found, from = asked, max(next, from)
	}
	return found, nil
}

// instancesAhead is the number of instances that Completed reads at once.
const instancesAhead = 1000

// completedInstances holds the completed instances that were last read for a view, by name. It is safe for concurrent use.
type completedInstances struct {
	mu     sync.Mutex
	byName map[string]*InstanceView
}

func (c *completedInstances) get(name string) *InstanceView {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byName[name]
}

func (c *completedInstances) set(byName map[string]*InstanceView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byName = byName
}

// Completed returns an instance of a task, or nil if it has not completed. It also reads the instances after it and keeps them with
// the view, which Read has returned, so that a caller who needs one after the other reads each part of a large fan-out once. A
// completed instance changes only together with such a view.
func (r *Reader) Completed(ctx context.Context, v *View, task string, index int) (*InstanceView, error) {
	name := names.InstanceName(task, index)
	if found := v.completed.get(name); found != nil {
		return found, nil
	}
	some, err := r.Instances(ctx, v, task, index, instancesAhead)
	if err != nil {
		return nil, err
	}
	byName := map[string]*InstanceView{}
	for _, i := range some {
		if i.Instance.GetState() == v1.TaskCompleted {
			byName[names.InstanceName(task, int(i.Instance.GetIndex()))] = i
		}
	}
	v.completed.set(byName)
	return byName[name], nil
}

// queryHolder queries the workflow that holds an instance for that instance and the ones after it.
func (r *Reader) queryHolder(ctx context.Context, v *View, task string, from, limit int) (found []*InstanceView, next int, err error) {
	holder, stored := v.Run.GetId(), false
	req := &historyv1.InstancesRequest{Task: task, From: int32(from), Limit: int32(limit)}
	answer, err := r.QueryInstances(ctx, holder, req)
	if err != nil {
		return nil, 0, err
	}
	if answer.GetChild() != "" {
		open := answer.GetOpen()
		holder, err = answer.GetChild(), store.ErrNotFound
		if !open { // otherwise a stored status stems from an earlier opening
			answer, err = r.storedInstances(ctx, holder, req)
			stored = err == nil
		}
		if errors.Is(err, store.ErrNotFound) { // the child is still open
			answer, err = r.QueryInstances(ctx, holder, req)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	var running map[string]RunningAttempt
	if !stored {
		if running, err = r.runningIn(ctx, holder); err != nil {
			return nil, 0, err
		}
	}
	for _, i := range answer.GetInstances() {
		shown := &InstanceView{
			Instance: i, Brief: BriefInstance(i), Record: answer.GetRecords()[i.GetIndex()], Claim: answer.GetClaims()[i.GetIndex()],
		}
		if at, ok := running[names.InstanceName(task, int(i.GetIndex()))]; ok && i.GetState() == v1.TaskAssigned {
			shown.showAttempt(at)
		}
		found = append(found, shown)
	}
	return found, int(answer.GetNext()), nil
}

// storedInstances reads the instances of an ended child from the store. Querying the child would replay its whole history.
func (r *Reader) storedInstances(ctx context.Context, child string, req *historyv1.InstancesRequest) (*historyv1.InstancesResponse, error) {
	of, ok := names.ParseFanOutID(child)
	if !ok {
		return nil, fmt.Errorf("%q is not the id of a fan-out child", child)
	}
	var kept historyv1.StatusResponse
	if err := r.store.GetMessage(ctx, storekey.Status(child, of.Generation), &kept); err != nil {
		return nil, err
	}
	res := &historyv1.InstancesResponse{Records: map[int32]string{}, Claims: map[int32]int32{}, Next: req.GetFrom()}
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

// runningIn returns the running attempts of a workflow, by task or instance.
func (r *Reader) runningIn(ctx context.Context, workflow string) (map[string]RunningAttempt, error) {
	desc, err := r.client.DescribeWorkflowExecution(ctx, workflow, "")
	if err != nil {
		return nil, err
	}
	running := map[string]RunningAttempt{}
	for id, attempt := range RunningAttempts(desc.GetPendingActivities(), time.Now()) {
		name, _, _ := names.ParseAttemptID(id)
		running[name] = attempt
	}
	return running, nil
}

// QueryInstances queries a workflow for instances. It repeats a query that times out until patience has passed.
func (r *Reader) QueryInstances(ctx context.Context, workflow string, req *historyv1.InstancesRequest) (*historyv1.InstancesResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		answer := &historyv1.InstancesResponse{}
		err := r.Query(ctx, workflow, names.InstancesQuery, req, answer)
		if err == nil || rpcerror.CodeOf(err) != connect.CodeDeadlineExceeded || ctx.Err() != nil {
			return answer, err
		}
	}
}
