package cli

import (
	"context"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// fakeRun is the run that a fakeGateway controls.
const fakeRun = "nightly-4g5h6jkm"

// script makes the fake gateway answer a method with replies in order; the last one repeats. The method is the one whose
// response they are. A nil reply stands for the error f.absent.
func script[T any](f *fakeGateway, replies ...*T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	method := strings.TrimSuffix(reflect.TypeFor[T]().Name(), "Response")
	f.replies[method] = nil
	for _, reply := range replies {
		if reply == nil {
			f.replies[method] = append(f.replies[method], nil)
		} else {
			f.replies[method] = append(f.replies[method], connect.NewResponse(reply))
		}
	}
}

// requests returns the requests of a type that the script has answered.
func requests[T proto.Message](f *fakeGateway) (found []T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, asked := range f.asked {
		if req, ok := asked.(T); ok {
			found = append(found, req)
		}
	}
	return found
}

// followScript answers the methods of the script, records their requests, and leaves other methods to their handlers.
func (f *fakeGateway) followScript(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		method := path.Base(req.Spec().Procedure)
		if f.starting != nil && (method == "SubmitRun" || method == "RerunRun") {
			f.starting <- struct{}{}
			select {
			case <-f.starting:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		f.mu.Lock()
		replies := f.replies[method]
		if len(replies) == 0 {
			f.mu.Unlock()
			return next(ctx, req)
		}
		defer f.mu.Unlock()
		f.asked = append(f.asked, req.Any().(proto.Message))
		if err := f.failNext; err != nil {
			f.failNext = nil
			return nil, err
		}
		if f.fail != nil {
			return nil, f.fail
		}
		f.replies[method] = replies[min(1, len(replies)-1):]
		if replies[0] == nil {
			return nil, f.absent
		}
		return replies[0], nil
	}
}

// scriptDefaults answers the calls that start, list and steer runs, tasks and nodes.
func scriptDefaults(f *fakeGateway) {
	script(f, &v1.SubmitRunResponse{Id: fakeRun, Name: "nightly"})
	script(f, &v1.ListRunsResponse{})
	script(f, &v1.PauseRunResponse{Id: fakeRun})
	script(f, &v1.ResumeRunResponse{Id: fakeRun})
	script(f, &v1.HoldTaskResponse{Id: fakeRun})
	script(f, &v1.ReleaseTaskResponse{Id: fakeRun})
	script(f, &v1.CancelTaskResponse{Id: fakeRun})
	script(f, &v1.PauseTaskResponse{Id: fakeRun})
	script(f, &v1.ResumeTaskResponse{Id: fakeRun})
	script(f, &v1.StopTaskResponse{Id: fakeRun})
	script(f, &v1.RestartTaskResponse{Id: fakeRun})
	script(f, &v1.KillTaskResponse{Id: fakeRun})
	script(f, &v1.ApproveTaskResponse{Id: fakeRun})
	script(f, &v1.ApproveRunResponse{Id: fakeRun})
	script(f, &v1.RejectTaskResponse{Id: fakeRun})
	script(f, &v1.RetryRunResponse{Id: fakeRun, Generation: 2})
	script(f, &v1.RerunRunResponse{Id: "nightly-7n8p9qrs", Name: "nightly"})
	script(f, &v1.SetNodeTermsResponse{Node: &v1.Node{Name: "a"}})
	script(f, &v1.UndrainNodeResponse{Node: &v1.Node{Name: "a", State: "active"}})
	script(f, &v1.RemoveNodeResponse{})
	script(f, &v1.CreateVpsResponse{Id: "vps-x", Task: "vps"})
}

// ListInstances returns the instances of a task, at most f.page or the requested number a page.
func (f *fakeGateway) ListInstances(_ context.Context, req *connect.Request[v1.ListInstancesRequest]) (*connect.Response[v1.ListInstancesResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, req.Msg)
	all := f.instances[req.Msg.GetTask()]
	if state := req.Msg.GetState(); state != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(i *v1.Instance) bool { return i.GetState() != state })
	}
	from, _ := strconv.Atoi(req.Msg.GetPageToken())
	from = min(max(from, int(req.Msg.GetFirst())), len(all))
	to := min(from+min(int(req.Msg.GetPageSize()), f.page), len(all))
	res := &v1.ListInstancesResponse{Items: all[from:to]}
	if to < len(all) {
		res.NextPageToken = strconv.Itoa(to)
	}
	return connect.NewResponse(res), f.fail
}
