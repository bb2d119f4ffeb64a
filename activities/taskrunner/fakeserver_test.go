package taskrunner

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	activitypb "go.temporal.io/api/activity/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/executor/workspace"
	"switchyard/activities/store"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// patience bounds how long a test waits for a condition.
const patience = 2 * time.Minute

var errAway = serviceerror.NewUnavailable("the server is away")

// server is a fake of Temporal for attempts: it answers heartbeats as the test says.
type server struct {
	client.Client // its other methods are not called

	mu     sync.Mutex
	answer func(n int, p *historyv1.ExecuteProgress) error // answers the n-th heartbeat, from 0
	beats  []*historyv1.ExecuteProgress
	// closed holds the tokens of activities that the server does not know any more, and newest the last token that it has
	// received.
	closed map[string]bool
	newest string
	// answers holds the answers that activities got from outside, by token. busy is how many such calls still fail.
	answers map[string]*historyv1.ExecuteResponse
	busy    int
	// timeouts holds the raised heartbeat time-outs, by activity id, and asked counts the calls about them. refusal is the error
	// of these calls.
	timeouts map[string]time.Duration
	asked    int
	refusal  error
}

func (s *server) WorkflowService() workflowservice.WorkflowServiceClient { return options{server: s} }

// options is the part of Temporal's API that changes the options of activities.
type options struct {
	workflowservice.WorkflowServiceClient // its other methods are not called
	server                                *server
}

func (o options) UpdateActivityOptions(_ context.Context, req *workflowservice.UpdateActivityOptionsRequest, _ ...grpc.CallOption) (*workflowservice.UpdateActivityOptionsResponse, error) {
	s, id := o.server, req.GetId()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked++; s.refusal != nil {
		return nil, s.refusal
	}
	if s.timeouts == nil {
		s.timeouts = map[string]time.Duration{}
	}
	if len(req.GetUpdateMask().GetPaths()) > 0 {
		s.timeouts[id] = req.GetActivityOptions().GetHeartbeatTimeout().AsDuration()
	}
	return &workflowservice.UpdateActivityOptionsResponse{ActivityOptions: &activitypb.ActivityOptions{HeartbeatTimeout: durationpb.New(s.timeouts[id])}}, nil
}

// refuse makes the calls that change time-outs fail.
func (s *server) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = err
}

// timeoutOf returns the raised time-out of an activity, or 0.
func (s *server) timeoutOf(id string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeouts[id]
}

// updates returns how many calls about time-outs the server has had.
func (s *server) updates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *server) RecordActivityHeartbeat(_ context.Context, token []byte, details ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed[string(token)] {
		return serviceerror.NewNotFound("no such activity")
	}
	var p *historyv1.ExecuteProgress // nil if the heartbeat is not that of an attempt
	if len(details) > 0 {
		p = details[0].(*historyv1.ExecuteProgress)
		s.newest, s.beats = string(token), append(s.beats, p)
	}
	if s.answer == nil {
		return nil
	}
	return s.answer(len(s.beats)-1, p)
}

// say sets how the server answers heartbeats from now on.
func (s *server) say(answer func(n int, p *historyv1.ExecuteProgress) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// close makes the server forget the activity of a token.
func (s *server) close(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil {
		s.closed = map[string]bool{}
	}
	s.closed[token] = true
}

// hears returns the last token that the server has received.
func (s *server) hears() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// heard returns the heartbeats so far.
func (s *server) heard() []*historyv1.ExecuteProgress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*historyv1.ExecuteProgress(nil), s.beats...)
}

// testRoom is a Room whose Acquire calls a function of the test.
type testRoom func(ctx context.Context) error

func (r testRoom) Acquire(ctx context.Context, _ *historyv1.ExecuteRequest) (func(), error) {
	if err := r(ctx); err != nil {
		return nil, err
	}
	return func() {}, nil
}

func (r testRoom) Restore(*historyv1.ExecuteRequest, time.Time) (func(), error) {
	return func() {}, nil
}

// bench is a node with a fake server and a fake executor.
type bench struct {
	*Node
	t      *testing.T
	server *server
	fake   *fake.Executor
	// heartbeat is the heartbeat time-out of the attempts.
	heartbeat time.Duration
	stopping  chan struct{}
}

func newBench(t *testing.T, script map[string][]fake.Step) *bench {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.LimitArrival(time.Millisecond)
	b := &bench{t: t, server: &server{}, fake: fake.New("shell", script), heartbeat: time.Hour, stopping: make(chan struct{})}
	b.Node = &Node{
		Name: "n", Client: b.server, Store: s, Room: testRoom(func(context.Context) error { return nil }),
		Executors: map[string]executor.Executor{"shell": b.fake}, Folders: Folders{Workspaces: workspace.NewRoot(t.TempDir(), "")},
		Logger: slog.New(slog.DiscardHandler),
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func request(task string) *historyv1.ExecuteRequest {
	return &historyv1.ExecuteRequest{RunId: "r-1", Workflow: "r", Task: task, Type: "shell", Claim: 1, Spec: &structpb.Struct{}, InlineLimit: 1000}
}

// execution is a call of Execute in progress.
type execution struct {
	b    *bench
	done chan struct{}
	res  *historyv1.ExecuteResponse
	err  error
}

func (b *bench) start(ctx context.Context, req *historyv1.ExecuteRequest) *execution {
	return b.startAs(ctx, "token", req)
}

// startAs calls Execute for the activity with a token.
func (b *bench) startAs(ctx context.Context, token string, req *historyv1.ExecuteRequest) *execution {
	e := &execution{b: b, done: make(chan struct{})}
	d := delivery{activityRef: activityRef{token: []byte(token), heartbeat: b.heartbeat}, queue: "node:n:cpu", stopping: b.stopping}
	go func() {
		defer close(e.done)
		e.res, e.err = b.executeFrom(ctx, d, req)
	}()
	return e
}

// answer waits for the end of an execution and returns its answer. An error fails the test.
func (e *execution) answer() *historyv1.ExecuteResponse {
	e.b.t.Helper()
	select {
	case <-e.done:
	case <-time.After(patience):
		e.b.t.Fatal("no answer comes")
	}
	if e.err != nil {
		e.b.t.Fatal(e.err)
	}
	return e.res
}

// runs waits until an attempt of the task runs.
func (b *bench) runs(task string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	if err := b.fake.AwaitRunning(ctx, task); err != nil {
		b.t.Fatalf("%s does not run: %v", task, err)
	}
}

// want checks the state and the reason of an answer.
func want(t *testing.T, res *historyv1.ExecuteResponse, state, reason string) {
	t.Helper()
	if res.GetState() != state || res.GetReason() != reason {
		t.Errorf("got %v, want %s %s", res, state, reason)
	}
}

// awayOnceSpawned answers no heartbeat that says that the process has started.
func awayOnceSpawned(_ int, p *historyv1.ExecuteProgress) error {
	if p.GetSpawned() {
		return errAway
	}
	return nil
}

// losesLease runs an attempt whose process starts within a short lease, which the server does not renew afterwards. It tries
// again if a busy machine loses the lease before the start.
func (b *bench) losesLease(req *historyv1.ExecuteRequest) (res *historyv1.ExecuteResponse) {
	b.t.Helper()
	b.heartbeat = 500 * time.Millisecond
	b.server.say(awayOnceSpawned)
	testneeds.Await(b.t, "the process starts in time", func() bool {
		res = b.start(b.t.Context(), req).answer()
		return res.GetStartedAt() != nil
	})
	return res
}
