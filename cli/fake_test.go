package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// fakeGateway is a scripted gateway over HTTP/2.
type fakeGateway struct {
	switchyardv1connect.UnimplementedRunServiceHandler
	url    string
	server *httptest.Server

	mu        sync.Mutex
	cancelled []*v1.CancelRunRequest
	logged    []*v1.StreamRunLogsRequest
	lines     []*v1.LogLine // returned by ListRunLogs

	// definition is returned by GetRunDefinition. nil means that the caller may not access the run.
	definition *v1.Definition

	run      *v1.Run // returned by GetRun, with two tasks a page
	messages []*v1.WatchRunResponse
	// untilCancel holds back the last message of a watch until the run is cancelled.
	untilCancel bool
	// onlyForced makes a cancel without force a no-op.
	onlyForced bool
	deaf       bool          // a cancel gets no reply
	held       chan struct{} // if not nil, a cancel counts when this is closed, unless its client has gone before
	starting   chan struct{} // if not nil, a call that starts a run sends to this, and receives from it before the answer
	inFinally  bool          // a cancel leaves finally running
	cancel     chan struct{}
	breaks     int    // number of watches and log streams that break after their first message
	cuts       int    // number of log streams that lose their connection after their first message
	beforeCut  func() // called before such a loss
	logs       []*v1.LogEntry
	missing    []*v1.MissingLog
	lateLogs   bool  // a log stream does not end
	fail       error // error of every call but GetRun

	replies  map[string][]connect.AnyResponse // of the script, by method
	asked    []proto.Message                  // requests that the script has answered
	failNext error                            // error of the next call that the script answers
	absent   error                            // error in place of a nil reply of the script

	// instances of tasks, served at most page at a time.
	instances map[string][]*v1.Instance
	page      int

	sessions fakeSessions
}

func fake(t *testing.T) *fakeGateway {
	t.Helper()
	f := &fakeGateway{cancel: make(chan struct{}), replies: map[string][]connect.AnyResponse{}}
	scriptDefaults(f)
	scripted := connect.WithInterceptors(connect.UnaryInterceptorFunc(f.followScript))
	mux := http.NewServeMux()
	mux.Handle(switchyardv1connect.NewRunServiceHandler(f, scripted))
	mux.Handle(switchyardv1connect.NewWorkflowServiceHandler(switchyardv1connect.UnimplementedWorkflowServiceHandler{}, scripted))
	mux.Handle(switchyardv1connect.NewNodeServiceHandler(switchyardv1connect.UnimplementedNodeServiceHandler{}, scripted))
	mux.Handle(switchyardv1connect.NewScheduleServiceHandler(switchyardv1connect.UnimplementedScheduleServiceHandler{}, scripted))
	mux.Handle(switchyardv1connect.NewTaskServiceHandler(switchyardv1connect.UnimplementedTaskServiceHandler{}, scripted))
	mux.Handle(switchyardv1connect.NewSecretServiceHandler(switchyardv1connect.UnimplementedSecretServiceHandler{}, scripted))
	mux.Handle(switchyardv1connect.NewOwnerServiceHandler(switchyardv1connect.UnimplementedOwnerServiceHandler{}, scripted))
	mux.Handle(switchyardv1connect.NewNotificationServiceHandler(switchyardv1connect.UnimplementedNotificationServiceHandler{}, scripted))
	mux.Handle(switchyardv1connect.NewKeyServiceHandler(switchyardv1connect.UnimplementedKeyServiceHandler{}, scripted))
	mux.Handle(switchyardv1connect.NewExportServiceHandler(switchyardv1connect.UnimplementedExportServiceHandler{}, scripted))
	mux.Handle(switchyardv1connect.NewAuditServiceHandler(switchyardv1connect.UnimplementedAuditServiceHandler{}, scripted))
	mux.Handle(switchyardv1connect.NewVpsServiceHandler(switchyardv1connect.UnimplementedVpsServiceHandler{}, scripted))
	mux.Handle("/v1/sessions", &f.sessions)
	t.Cleanup(f.sessions.cut)
	mux.Handle(switchyardv1connect.NewEnvironmentServiceHandler(switchyardv1connect.UnimplementedEnvironmentServiceHandler{}, scripted))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Config.Protocols.SetHTTP1(true) // for sessions
	server.Start()
	t.Cleanup(server.Close)
	f.url, f.server = server.URL, server
	return f
}

func (f *fakeGateway) GetRun(_ context.Context, req *connect.Request[v1.GetRunRequest]) (*connect.Response[v1.GetRunResponse], error) {
	if f.run == nil {
		return nil, connect.NewError(connect.CodeNotFound, errNoRun)
	}
	var names []string
	for name := range f.run.GetTasks() {
		if only := req.Msg.GetTasks(); len(only) == 0 || slices.Contains(only, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	page := proto.CloneOf(f.run)
	res := &v1.GetRunResponse{Run: page}
	from, _ := slices.BinarySearch(names, req.Msg.GetPageToken())
	page.Tasks = map[string]*v1.Task{}
	for i, name := range names[from:] {
		if i == 2 {
			res.NextPageToken = name
			break
		}
		page.Tasks[name] = f.run.Tasks[name]
	}
	return connect.NewResponse(res), nil
}

func (f *fakeGateway) WatchRun(ctx context.Context, _ *connect.Request[v1.WatchRunRequest], stream *connect.ServerStream[v1.WatchRunResponse]) error {
	f.mu.Lock()
	breaks := f.breaks > 0
	f.breaks--
	f.mu.Unlock()
	for i, m := range f.messages {
		if f.untilCancel && i == len(f.messages)-1 {
			select {
			case <-f.cancel:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := stream.Send(m); err != nil {
			return err
		}
		if breaks {
			return connect.NewError(connect.CodeUnavailable, errStopping)
		}
	}
	return nil
}

func (f *fakeGateway) CancelRun(ctx context.Context, req *connect.Request[v1.CancelRunRequest]) (*connect.Response[v1.CancelRunResponse], error) {
	f.mu.Lock()
	deaf, held := f.deaf, f.held
	f.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if deaf {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return nil, f.fail
	}
	f.cancelled = append(f.cancelled, req.Msg)
	res := &v1.CancelRunResponse{Id: fakeRun, FinallyRuns: f.inFinally}
	if len(f.cancelled) == 1 && !f.onlyForced || f.onlyForced && req.Msg.GetForce() {
		close(f.cancel)
	}
	if req.Msg.GetForce() {
		res.Children, res.Attempts = 2, 3
	}
	return connect.NewResponse(res), nil
}

// ListRunLogs returns the lines of the requested task.
func (f *fakeGateway) ListRunLogs(_ context.Context, req *connect.Request[v1.ListRunLogsRequest]) (*connect.Response[v1.ListRunLogsResponse], error) {
	res := &v1.ListRunLogsResponse{}
	for _, line := range f.lines {
		if line.GetTask() == req.Msg.GetTask() {
			res.Items = append(res.Items, line)
		}
	}
	res.Items = res.Items[max(0, len(res.Items)-int(req.Msg.GetTail())):]
	return connect.NewResponse(res), nil
}

// StreamRunLogs sends each entry as a chunk of its own, and skips those that the client has.
func (f *fakeGateway) StreamRunLogs(ctx context.Context, req *connect.Request[v1.StreamRunLogsRequest], stream *connect.ServerStream[v1.StreamRunLogsResponse]) error {
	f.mu.Lock()
	f.logged = append(f.logged, req.Msg)
	breaks, cuts := f.breaks > 0, f.cuts > 0
	f.breaks--
	f.cuts--
	f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	next := map[string]int64{}
	for _, e := range f.logs {
		at := &v1.LogPosition{Task: e.GetTask(), Attempt: e.GetAttempt(), Claim: 1, Next: next[e.GetTask()] + 1}
		next[e.GetTask()] = at.Next
		if slices.ContainsFunc(req.Msg.GetResume(), func(p *v1.LogPosition) bool { return p.GetTask() == at.GetTask() && p.GetNext() >= at.GetNext() }) {
			continue
		}
		if err := stream.Send(&v1.StreamRunLogsResponse{Entries: []*v1.LogEntry{e}, Position: at}); err != nil {
			return err
		}
		if breaks {
			return connect.NewError(connect.CodeUnavailable, errStopping)
		}
		if cuts {
			f.beforeCut()
			f.server.CloseClientConnections()
			<-ctx.Done()
			return ctx.Err()
		}
	}
	for _, m := range f.missing {
		if err := stream.Send(&v1.StreamRunLogsResponse{Missing: m}); err != nil {
			return err
		}
	}
	if f.lateLogs {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}
