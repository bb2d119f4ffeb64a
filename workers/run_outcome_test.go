package workers

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/metrics"
	"switchyard/activities/registry"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// puppet is a node of the fleet whose attempts end as a test scripts. It can fall silent like a node whose machine has
// failed.
type puppet struct {
	*workerSet
	name string
	node *Node

	mu       sync.Mutex
	requests []*v1.ExecuteRequest
	silence  chan struct{}
}

// move is how a puppet handles one dispatch.
type move func(ctx context.Context, p *puppet) (*v1.ExecuteResponse, error)

// puppet starts a puppet that performs the moves in order and then completes every further dispatch.
func (c *workerSet) puppet(short string, moves ...move) *puppet {
	c.t.Helper()
	return c.puppetOf(c.start(short), short, names.CPULane, moves...)
}

// puppetOf makes a puppet take the dispatches of a node's last lane.
func (c *workerSet) puppetOf(n *Node, short string, of names.Lane, moves ...move) *puppet {
	c.t.Helper()
	lane := len(n.workers) - 1
	n.workers[lane].Stop() // the node stays in the fleet, and the puppet takes its tasks
	n.workers = n.workers[:lane]
	p := &puppet{workerSet: c, name: c.name(short), node: n, silence: make(chan struct{})}
	w := worker.New(c.conn.Client, names.NodeQueue(p.name, of), worker.Options{DisableWorkflowWorker: true})
	w.RegisterActivityWithOptions(func(ctx context.Context, req *v1.ExecuteRequest) (*v1.ExecuteResponse, error) {
		p.mu.Lock()
		p.requests = append(p.requests, req)
		do := p.complete
		if len(p.requests) <= len(moves) {
			do = moves[len(p.requests)-1]
		}
		p.mu.Unlock()
		return do(ctx, p)
	}, activity.RegisterOptions{Name: names.ExecuteActivity})
	if err := w.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		close(p.silence)
		w.Stop()
	})
	return p
}

// at returns a time that the clock of this machine cannot show.
func at(second int64) *timestamppb.Timestamp {
	return timestamppb.New(time.Unix(2_000_000_000+second, 0))
}

func (*puppet) complete(_ context.Context, p *puppet) (*v1.ExecuteResponse, error) {
	return &v1.ExecuteResponse{
		State: "completed", Result: &v1.TaskResult{}, Node: p.name,
		AssignedAt: at(1), StartedAt: at(2), CompletedAt: at(3),
	}, nil
}

// die returns a move that heartbeats once and then never again.
func die(spawned bool) move {
	return func(ctx context.Context, p *puppet) (*v1.ExecuteResponse, error) {
		beat := &v1.ExecuteProgress{Spawned: spawned}
		if spawned {
			beat.StartedAt = at(0)
		}
		activity.RecordHeartbeat(ctx, beat)
		<-p.silence
		return nil, nil
	}
}

// leave heartbeats once, and then its node leaves the fleet.
func leave(ctx context.Context, p *puppet) (*v1.ExecuteResponse, error) {
	activity.RecordHeartbeat(ctx, &v1.ExecuteProgress{Spawned: true, StartedAt: at(0)})
	go p.node.Stop()
	<-p.silence
	return nil, nil
}

// loseLease hands the dispatch back after its process has started.
func loseLease(context.Context, *puppet) (*v1.ExecuteResponse, error) {
	return &v1.ExecuteResponse{State: "moved", Reason: "lease_lost", Error: "for a test", StartedAt: at(0), CompletedAt: at(1)}, nil
}

// answer returns a move that hands the dispatch back or fails it.
func answer(state, reason string) move {
	return func(context.Context, *puppet) (*v1.ExecuteResponse, error) {
		return &v1.ExecuteResponse{State: state, Reason: reason, Error: "for a test"}, nil
	}
}

func breakDown(context.Context, *puppet) (*v1.ExecuteResponse, error) {
	return nil, temporal.NewApplicationError("the disk is full", "disk")
}

// dispatches returns the requests as a text.
func (p *puppet) dispatches() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var words []string
	for _, r := range p.requests {
		words = append(words, fmt.Sprintf("%d.%d%v", r.GetAttempt(), r.GetClaim(), r.GetUnacknowledged()))
	}
	return strings.Join(words, " ")
}

func TestHowDispatchesEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		moves      []move
		retries    int
		state      string // state of the task
		attempts   string
		dispatches string // attempt, claim, and attempts that were never reported
		events     string
		suspicions int32
	}{
		"lost on a live node": {
			moves: []move{die(true)}, retries: 1, state: "completed",
			attempts: "0.2 completed ", dispatches: "0.1[] 0.2[0]",
			events: "submitted queued assigned silent started reassigned assigned started completed",
		},
		"lost on a live node, not repeated": {
			moves: []move{die(true)}, retries: 0, state: "lost lease_lost",
			attempts: "0.1 lost lease_lost", dispatches: "0.1[]",
			events: "submitted queued assigned silent started failed",
		},
		"lost with its node, not repeated": {
			moves: []move{leave}, retries: 0, state: "lost node_lost",
			attempts: "0.1 lost node_lost", dispatches: "0.1[]",
			events: "submitted queued assigned silent started failed",
		},
		"handed back without a lease after its start": {
			moves: []move{loseLease}, retries: 1, state: "completed",
			attempts: "0.2 completed ", dispatches: "0.1[] 0.2[0]",
			events: "submitted queued assigned started reassigned assigned started completed",
		},
		"handed back without a lease after its start, not repeated": {
			moves: []move{loseLease}, retries: 0, state: "lost lease_lost",
			attempts: "0.1 lost lease_lost", dispatches: "0.1[]",
			events: "submitted queued assigned started failed",
		},
		"handed back without a lease again and again": {
			moves: []move{loseLease, loseLease, loseLease, loseLease}, retries: 1, state: "completed",
			attempts: "0.4 lost lease_lost, 1.5 completed ", dispatches: "0.1[] 0.2[0] 0.3[0] 0.4[0] 1.5[0]",
			events: "submitted queued assigned started reassigned assigned started reassigned assigned started reassigned assigned " +
				"started failed retried queued assigned started completed",
		},
		"lost before it started": {
			moves: []move{die(false)}, retries: 0, state: "completed", suspicions: 1,
			attempts: "0.2 completed ", dispatches: "0.1[] 0.2[0]",
			events: "submitted queued assigned reassigned assigned started completed",
		},
		"handed back": {
			moves: []move{answer("moved", "draining"), answer("moved", "not_started")}, retries: 0, state: "completed", suspicions: 1,
			attempts: "0.3 completed ", dispatches: "0.1[] 0.2[] 0.3[]",
			events: "submitted queued assigned reassigned assigned reassigned assigned started completed",
		},
		"handed back without a lease": {
			moves: []move{answer("moved", "lease_lost")}, retries: 0, state: "completed",
			attempts: "0.2 completed ", dispatches: "0.1[] 0.2[0]",
			events: "submitted queued assigned reassigned assigned started completed",
		},
		"no room": {
			moves: []move{answer("moved", "no_room")}, retries: 0, state: "completed",
			attempts: "0.2 completed ", dispatches: "0.1[] 0.2[]",
			events: "submitted queued assigned reassigned assigned started completed",
		},
		"broken node": {
			moves: []move{breakDown}, retries: 1, state: "completed",
			attempts: "0.1 failed system, 1.2 completed ", dispatches: "0.1[] 1.2[]",
			events: "submitted queued assigned failed retried queued assigned started completed",
		},
		"out of memory": {
			moves: []move{answer("killed_oom", "oom"), answer("killed_oom", "oom")}, retries: 1, state: "dead_letter oom",
			attempts: "0.1 killed_oom oom, 1.2 killed_oom oom", dispatches: "0.1[] 1.2[]",
			events: "submitted queued assigned failed retried queued assigned failed dead_lettered",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := shared(t).workers(t, nil)
			p := c.puppet("n", test.moves...)
			in := c.input(fmt.Sprintf(`{name: outcome, tasks: {x: {type: shell, spec: {command: x}, retry: {maxRetries: %d, backoffMs: 1}}}}`, test.retries))
			if strings.HasPrefix(name, "lost") {
				// Long enough for the next dispatch to end in time on a slow machine.
				in.Options = &v1.RunOptions{HeartbeatTimeout: durationpb.New(5 * time.Second)}
			}
			h := c.submit(in)
			run := h.wait()
			state := map[bool]string{true: "completed", false: "failed"}[test.state == "completed"]
			want(t, run, state, map[string]string{"x": test.state})
			x := run.Tasks["x"]
			var attempts []string
			for _, a := range x.GetAttempts() {
				attempts = append(attempts, fmt.Sprintf("%d.%d %s %s", a.GetAttempt(), a.GetClaim(), a.GetState(), a.GetReason()))
				if a.GetNode() != p.name || a.GetCompletedAt() == nil {
					t.Errorf("attempt %v", a)
				}
			}
			if got := strings.Join(attempts, ", "); got != test.attempts || x.GetSuspicions() != test.suspicions {
				t.Errorf("attempts are %q, %d suspicions; want %q, %d", got, x.GetSuspicions(), test.attempts, test.suspicions)
			}
			if got := p.dispatches(); got != test.dispatches {
				t.Errorf("dispatches are %s, want %s", got, test.dispatches)
			}
			if got := h.lifecycle("x", 1); got != test.events {
				t.Errorf("events are %s, want %s", got, test.events)
			}
			if x.GetState() == "completed" {
				// The times must come from the node's clock.
				if !slices.Equal([]int64{x.GetAssignedAt().GetSeconds(), x.GetStartedAt().GetSeconds(), x.GetCompletedAt().GetSeconds()},
					[]int64{at(1).GetSeconds(), at(2).GetSeconds(), at(3).GetSeconds()}) {
					t.Errorf("times of %v", x)
				}
			}
			if r := p.requests[0]; r.GetNode() != p.name || r.GetIncarnation() == "" {
				t.Errorf("the first request is %v", r)
			}
			for _, e := range h.stored(0) {
				if e.GetEvent() == "assigned" && (e.GetDetail() == "" || e.GetNode() != p.name || e.GetClaim() == 0 || e.GetData().GetFields()["score"] == nil) {
					t.Errorf("event %v", e)
				}
			}
			if test.state == "lost node_lost" && x.GetStartedAt().GetSeconds() != at(0).GetSeconds() {
				t.Errorf("the last beat told when it started: %v", x)
			}
			unknown := strings.HasSuffix(x.GetError(), "; it may have done its work, but nothing was recorded, and it is not repeated")
			if isLost := strings.HasPrefix(test.state, "lost "); unknown != isLost {
				t.Errorf("the error is %q", x.GetError())
			}
			replay(t, "outcome-"+strings.NewReplacer(" ", "-", ",", "").Replace(name), limits.Run{}, h.history(""))
		})
	}
}

// TestNotPickedUpIsSuspicion checks that a dispatch that a live node does not pick up goes elsewhere, and counts as a
// suspicion of the node.
func TestNotPickedUpIsSuspicion(t *testing.T) {
	t.Parallel()
	figures, err := metrics.New("test")
	if err != nil {
		t.Fatal(err)
	}
	y := own(t, ControlConfig{Metrics: figures})
	c := y.workers(t, nil)
	n := c.start("n")
	lane := len(n.workers) - 1
	n.workers[lane].Stop() // the node heartbeats but picks up nothing
	n.workers = n.workers[:lane]
	in := c.input(`{name: suspicion, tasks: {a: {type: shell, spec: {command: x}}}}`)
	in.Options = &v1.RunOptions{HeartbeatTimeout: durationpb.New(5 * time.Second), PickupTimeout: durationpb.New(5 * time.Second)}
	h := c.submit(in)
	h.until("a", func(a *v1.Task) bool { return a.GetSuspicions() > 0 })
	reg := registry.New(c.conn)
	eventually(t, "the node is suspected", func() bool {
		node, err := reg.Get(t.Context(), c.name("n"))
		return err == nil && node.GetSuspicions() > 0
	})
	c.start("m")
	run := h.wait()
	want(t, run, "completed", map[string]string{"a": "completed"})
	if a := run.GetTasks()["a"]; a.GetAttempt() != 0 || a.GetNode() != c.name("m") {
		t.Errorf("it ended as %v", a)
	}
	scrape := httptest.NewRecorder()
	figures.Handler().ServeHTTP(scrape, httptest.NewRequest("GET", metrics.Path, nil))
	if want := fmt.Sprintf(`switchyard_node_suspicions_total{node="%s"}`, c.name("n")); !strings.Contains(scrape.Body.String(), want) {
		t.Errorf("no %s in %s", want, scrape.Body)
	}
}
