package gateway

import (
	"context"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// limit is how long a test waits for an expected event. It is generous enough for slow machines.
const limit = 2 * time.Minute

// fixture is a gateway with its own store, listening on a free port.
type fixture struct {
	*Gateway
	server *Server
	client switchyardv1connect.RunServiceClient
}

func start(t *testing.T) *fixture {
	t.Helper()
	return startIn(t, "mem://")
}

// startIn starts a gateway with the store at a location.
func startIn(t *testing.T, location string) *fixture {
	t.Helper()
	return startConfigured(t, location, Config{})
}

// startConfigured starts a gateway with the store at a location and further settings.
func startConfigured(t *testing.T, location string, config Config) *fixture {
	t.Helper()
	if config.Store == nil {
		config.Store = openStore(t, location)
	}
	if config.Client == nil {
		config.Client = temporalClient
	}
	g, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	server, err := g.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Gateway: g, server: server}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	f.client = f.dial(t)
	return f
}

// openStore opens a store that is closed with the test.
func openStore(t *testing.T, location string) *store.Store {
	t.Helper()
	kept, err := store.Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	})
	return kept
}

// dial returns a client over HTTP/2.
func (f *fixture) dial(t *testing.T, options ...connect.ClientOption) switchyardv1connect.RunServiceClient {
	t.Helper()
	return switchyardv1connect.NewRunServiceClient(f.httpClient(t), f.server.URL(), options...)
}

// httpClient returns an HTTP/2 client.
func (f *fixture) httpClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// document returns a YAML definition with trivial tasks of the given names.
func document(name string, tasks ...string) string {
	text := "name: " + name + "\ntasks:\n"
	for _, task := range tasks {
		text += "  " + task + ": { type: shell, spec: { command: 'true' } }\n"
	}
	return text
}

// submit starts a scripted run with the named tasks, or with build and test if there are none.
func (f *fixture) submit(t *testing.T, name string, tasks ...string) (id string) {
	t.Helper()
	if len(tasks) == 0 {
		tasks = []string{"build", "test"}
	}
	res, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Document{Document: document(name, tasks...)},
	}))
	if err != nil {
		t.Fatal(err)
	}
	id = res.Msg.GetId()
	t.Cleanup(func() {
		// The call fails if the run has already ended, as most have.
		_ = temporalClient.TerminateWorkflow(context.Background(), id, "", "the test is over")
	})
	return id
}

// answer returns the response to a read. It repeats the call while it takes too long, because on a busy machine a run or Temporal
// may take longer than the gateway waits.
func answer[Req, Res any](t *testing.T, call func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), req *Req) *Res {
	t.Helper()
	for patience := time.Now().Add(time.Minute); ; {
		res, err := call(t.Context(), connect.NewRequest(req))
		if err == nil {
			return res.Msg
		}
		if code := connect.CodeOf(err); code != connect.CodeUnavailable && code != connect.CodeDeadlineExceeded || time.Now().After(patience) {
			t.Fatal(err)
		}
	}
}

func (f *fixture) get(t *testing.T, id string) *v1.Run {
	t.Helper()
	return answer(t, f.client.GetRun, &v1.GetRunRequest{Id: id}).GetRun()
}

// watching collects the messages that a watcher receives.
type watching struct {
	stream *connect.ServerStreamForClient[v1.WatchRunResponse]
	cancel context.CancelFunc
	run    *v1.Run // merged from all messages
	sent   int
}

func (f *fixture) watch(t *testing.T, id string) *watching {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	stream, err := f.client.WatchRun(ctx, connect.NewRequest(&v1.WatchRunRequest{Id: id}))
	if err != nil {
		t.Fatal(err)
	}
	w := &watching{stream: stream, cancel: cancel, run: &v1.Run{Tasks: map[string]*v1.Task{}}}
	t.Cleanup(w.close)
	return w
}

func (w *watching) close() {
	w.cancel()
	_ = w.stream.Close()
}

// next applies one message. It returns false at the end of the stream.
func (w *watching) next() bool {
	if !w.stream.Receive() {
		return false
	}
	m := w.stream.Msg()
	w.sent++
	tasks := w.run.GetTasks()
	for name, task := range m.GetRun().GetTasks() {
		tasks[name] = task
	}
	w.run = m.GetRun()
	w.run.Tasks = tasks
	return true
}

// until applies messages until check holds.
func (w *watching) until(t *testing.T, what string, check func() bool) {
	t.Helper()
	for !check() {
		if !w.next() {
			t.Fatalf("%s: the stream ended first: %v", what, w.stream.Err())
		}
	}
}
