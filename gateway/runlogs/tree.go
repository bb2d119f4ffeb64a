package runlogs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// pathSeparator separates the task that has started a run from a task of that run. It does not occur in task names.
	pathSeparator = "/"
	// instancesAtOnce is the number of instances that are read at once to find their child runs.
	instancesAtOnce = 1000
)

// Tree sends the logs of a run and then those of its child runs, one run after the other.
type Tree struct {
	reader *runview.Reader
	store  *store.Store
	req    *v1.StreamRunLogsRequest
	send   func(*v1.StreamRunLogsResponse) error
}

// NewTree returns a tree that answers a request. It reads logs from kept and passes messages to send.
func NewTree(reader *runview.Reader, kept *store.Store, req *v1.StreamRunLogsRequest, send func(*v1.StreamRunLogsResponse) error) *Tree {
	return &Tree{reader: reader, store: kept, req: req, send: send}
}

// ValidateTree returns an error if a request for the logs of child runs has options that only work for a single run.
func ValidateTree(req *v1.StreamRunLogsRequest) error {
	if req.GetFollow() || req.Attempt != nil || req.Generation != nil {
		return rpcerror.Invalid("children cannot be combined with follow, attempt or generation; name the child run instead")
	}
	return nil
}

// Send sends all logs of the run of a view and of its child runs.
func (t *Tree) Send(ctx context.Context, v *runview.View) error {
	return t.sendRun(ctx, v, "", t.req.GetTask())
}

// sendRun sends the logs of the tasks of one run, or of the named task, and then those of their child runs. It prefixes the
// names of tasks with path.
func (t *Tree) sendRun(ctx context.Context, v *runview.View, path, task string) error {
	f := New(v.Run.GetId(), t.store, t.requestOf(v.Run.GetId(), path, task), func(m *v1.StreamRunLogsResponse) error {
		return t.send(withPath(m, path))
	})
	if err := f.Validate(v); err != nil {
		return err
	}
	if err := f.SendAll(ctx, v.Since(0)); err != nil {
		return err
	}
	return t.eachChild(ctx, v, task, func(starter, run string) error {
		child, err := t.reader.Read(ctx, run)
		if rpcerror.CodeOf(err) == connect.CodeNotFound {
			return t.sendGone(path+starter, run)
		}
		if err != nil {
			return err
		}
		return t.sendRun(ctx, child, path+starter+pathSeparator, "")
	})
}

// requestOf returns the request for the run at path, with the positions that belong to that run.
func (t *Tree) requestOf(run, path, task string) *v1.StreamRunLogsRequest {
	req := &v1.StreamRunLogsRequest{Id: run, Task: task, Stream: t.req.GetStream(), Since: t.req.GetSince()}
	for _, p := range t.req.GetResume() {
		if name, ok := strings.CutPrefix(p.GetTask(), path); ok && !strings.Contains(name, pathSeparator) {
			req.Resume = append(req.Resume, &v1.LogPosition{
				Task: name, Generation: p.GetGeneration(), Attempt: p.GetAttempt(), Claim: p.GetClaim(), Next: p.GetNext(),
			})
		}
	}
	return req
}

// withPath prefixes the names of tasks in a message with path. It modifies the message.
func withPath(m *v1.StreamRunLogsResponse, path string) *v1.StreamRunLogsResponse {
	for _, e := range m.GetEntries() {
		e.Task = path + e.GetTask()
	}
	if m.GetPosition() != nil {
		m.Position.Task = path + m.GetPosition().GetTask()
	}
	if m.GetMissing() != nil {
		m.Missing.Task = path + m.GetMissing().GetTask()
	}
	return m
}

// sendGone sends a notice in place of the logs of a deleted run.
func (t *Tree) sendGone(task, run string) error {
	return t.send(&v1.StreamRunLogsResponse{Entries: []*v1.LogEntry{{
		Task: task, Stream: "stderr", Notice: true, Time: timestamppb.Now(), Data: fmt.Appendf(nil, "run %s has been deleted\n", run),
	}}})
}

// eachChild calls take for the newest child run of each task of type run, or of each of its instances, ordered by the start
// of the task. If task is not "", only the child runs of that task or instance are visited.
func (t *Tree) eachChild(ctx context.Context, v *runview.View, task string, take func(starter, run string) error) error {
	of, index, instance := names.ParseInstanceName(task)
	if !instance {
		of = task
	}
	starters := slices.DeleteFunc(slices.Clone(v.Names), func(name string) bool {
		return of != "" && name != of || v.Tasks[name].Task.GetType() != v1.TypeRun
	})
	slices.SortStableFunc(starters, func(a, b string) int {
		return v.Tasks[a].Task.GetStartedAt().AsTime().Compare(v.Tasks[b].Task.GetStartedAt().AsTime())
	})
	for _, name := range starters {
		if run := v.Tasks[name].Task.GetChildRun(); run != "" {
			if err := take(name, run); err != nil {
				return err
			}
		}
		for at := index; v.Tasks[name].Task.Count != nil; {
			some, err := t.reader.Instances(ctx, v, name, at, instancesAtOnce)
			if err != nil {
				return err
			}
			if len(some) == 0 {
				break
			}
			for _, i := range some {
				at = int(i.Instance.GetIndex()) + 1
				if run := i.Instance.GetChildRun(); run != "" {
					if err := take(names.InstanceName(name, at-1), run); err != nil {
						return err
					}
				}
				if instance {
					return nil
				}
			}
		}
	}
	return nil
}
