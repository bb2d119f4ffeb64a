package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"

	"switchyard/activities/registry"
	"switchyard/activities/secrets/vault"
	"switchyard/activities/store/storetest"
	"switchyard/gateway/nodes"
	"switchyard/gateway/tokens"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
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
		config.Store = storetest.Open(t, location)
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

// dial returns a client over HTTP/2.
func (f *fixture) dial(t *testing.T, options ...connect.ClientOption) switchyardv1connect.RunServiceClient {
	t.Helper()
	return switchyardv1connect.NewRunServiceClient(f.httpClient(t, ""), f.server.URL(), options...)
}

// dialAs returns a client with a token.
func (f *fixture) dialAs(t *testing.T, token string) switchyardv1connect.RunServiceClient {
	t.Helper()
	return dialService(t, f, switchyardv1connect.NewRunServiceClient, token)
}

// dialService returns a client of a service with a token, or without one if it is empty.
func dialService[Client any](t *testing.T, f *fixture, dial func(connect.HTTPClient, string, ...connect.ClientOption) Client, token string) Client {
	t.Helper()
	return dial(f.httpClient(t, token), f.server.URL())
}

// httpClient returns an HTTP/2 client with a token, or without one if it is empty.
func (f *fixture) httpClient(t *testing.T, token string) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: tokenTransport{transport, token}}
}

// dialClaiming returns a client that claims the name of its caller.
func (f *fixture) dialClaiming(t *testing.T, name string) switchyardv1connect.RunServiceClient {
	t.Helper()
	return f.dial(t, connect.WithInterceptors(connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			req.Header().Set(names.ActorHeader, name)
			return next(ctx, req)
		}
	})))
}

// tokenTransport adds a token, if there is one, to each request.
type tokenTransport struct {
	http.RoundTripper
	token string
}

func (t tokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	return t.RoundTripper.RoundTrip(r)
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
	return f.submitDocument(t, document(name, tasks...))
}

// submitDocument starts a scripted run of a document. change may set more of the request.
func (f *fixture) submitDocument(t *testing.T, text string, change ...func(*v1.SubmitRunRequest)) (id string) {
	t.Helper()
	req := submitRequest(text)
	for _, set := range change {
		set(req)
	}
	id = do(t, f.client.SubmitRun, req).GetId()
	terminate(t, id)
	return id
}

func submitRequest(text string) *v1.SubmitRunRequest {
	return &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: text}}
}

// terminate ends runs at the end of the test.
func terminate(t *testing.T, ids ...string) {
	t.Helper()
	t.Cleanup(func() {
		for _, id := range ids {
			// The call fails if the run has already ended, as most have.
			_ = temporalClient.TerminateWorkflow(context.Background(), id, "", "the test is over")
		}
	})
}

// execute starts a workflow on the control queue unless the options name another one. It ends with the test.
func execute(t *testing.T, options client.StartWorkflowOptions, workflow string, in any) client.WorkflowRun {
	t.Helper()
	options.TaskQueue = cmp.Or(options.TaskQueue, names.ControlQueue)
	run, err := temporalClient.ExecuteWorkflow(t.Context(), options, workflow, in)
	if err != nil {
		t.Fatal(err)
	}
	terminate(t, options.ID)
	return run
}

// startedWith starts a scripted run with search attributes and returns its id.
func startedWith(t *testing.T, a visibility.Attributes) string {
	t.Helper()
	id := names.NewRunID(a.Workflow)
	execute(t, client.StartWorkflowOptions{ID: id, TypedSearchAttributes: a.Typed()}, names.RunWorkflow, &historyv1.RunInput{Definition: &v1.Definition{Name: a.Workflow}})
	return id
}

// startPart starts the scripted child that carries the instances of a task from childFrom up to another one.
func startPart(t *testing.T, run, task string, to int32) (id string) {
	t.Helper()
	id = names.FanOut{Run: run, Task: task, From: childFrom}.ID()
	execute(t, client.StartWorkflowOptions{ID: id}, names.FanOutWorkflow, &historyv1.RunInput{Partition: &historyv1.Partition{From: childFrom, To: to}})
	return id
}

// call is a method of a client.
type call[Req, Res any] func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error)

// do makes a call that must succeed.
func do[Req, Res any](t *testing.T, call call[Req, Res], req *Req) *Res {
	t.Helper()
	res, err := call(t.Context(), connect.NewRequest(req))
	if err != nil {
		t.Fatal(err)
	}
	return res.Msg
}

// answer returns the response to a read. It repeats the call while it takes too long, because on a busy machine a run or Temporal
// may take longer than the gateway waits.
func answer[Req, Res any](t *testing.T, call call[Req, Res], req *Req) *Res {
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

// refused makes a call that must fail with a code and a message that contains texts, and returns the error.
func refused[Req, Res any](t *testing.T, what string, call call[Req, Res], req *Req, code connect.Code, texts ...string) error {
	t.Helper()
	_, err := call(t.Context(), connect.NewRequest(req))
	wantCode(t, what, err, code)
	for _, text := range texts {
		if err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v lacks %q", what, err, text)
		}
	}
	return err
}

func wantCode(t *testing.T, what string, err error, code connect.Code) {
	t.Helper()
	if connect.CodeOf(err) != code || err == nil {
		t.Errorf("%s: got %v, want %v", what, err, code)
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

// startLocked starts a gateway that requires tokens, with the store in dir. Several gateways may share a store.
func startLocked(t *testing.T, dir string, changes ...func(*Config)) *fixture {
	t.Helper()
	kept := storetest.Open(t, dir)
	registry := tokens.NewRegistry(kept, time.Now)
	authenticator := tokens.NewAuthenticator(registry, slog.New(slog.DiscardHandler))
	t.Cleanup(authenticator.Close)
	config := Config{Store: kept, Tokens: registry, Authenticator: authenticator, Vault: vault.New(kept, dir+".secrets-key", time.Now)}
	for _, change := range changes {
		change(&config)
	}
	return startConfigured(t, dir, config)
}

// token creates a token with a name and a role.
func (f *fixture) token(t *testing.T, name, role string) (secret string, created *v1.Token) {
	t.Helper()
	return f.newToken(t, &v1.Token{Name: name, Role: role})
}

// nodeToken creates a token for a node.
func (f *fixture) nodeToken(t *testing.T, node string) string {
	t.Helper()
	secret, _ := f.newToken(t, &v1.Token{Name: "worker-" + node, Role: v1.RoleNode, Node: node})
	return secret
}

func (f *fixture) newToken(t *testing.T, token *v1.Token) (secret string, created *v1.Token) {
	t.Helper()
	secret, created, err := f.config.Tokens.Create(t.Context(), token, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return secret, created
}

// fakeNodes is a registry in memory that is only read.
type fakeNodes struct {
	nodes.Registry
	nodes map[string]*v1.Node
}

func (f *fakeNodes) List(context.Context) (all []*v1.Node, err error) {
	for _, n := range f.nodes {
		all = append(all, n)
	}
	return all, nil
}

func (f *fakeNodes) Get(_ context.Context, name string) (*v1.Node, error) {
	if f.nodes[name] == nil {
		return nil, &registry.Error{Kind: registry.ErrUnknown, Message: "unknown"}
	}
	return f.nodes[name], nil
}
