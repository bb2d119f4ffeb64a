package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"switchyard/activities/election"
	"switchyard/activities/metrics"
	"switchyard/activities/notifications"
	"switchyard/activities/placement"
	"switchyard/activities/registry"
	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	electionworkflow "switchyard/workflows/election"
	"switchyard/workflows/limits"
	"switchyard/workflows/lock"
	"switchyard/workflows/names"
	"switchyard/workflows/node"
)

const (
	// leaderCheckInterval is how often a candidate checks that the workflow Leader is open.
	leaderCheckInterval = 10 * time.Second
	// leaderTaskTimeout is how long a process may take for a workflow task of Leader before the server reassigns it.
	leaderTaskTimeout = 5 * time.Second
	// electionStopTimeout is how long the stopping election worker waits for its term to end.
	electionStopTimeout = 10 * time.Second
	// leaderTimeout is the least time that a process with RoleLeader waits for a silent leader to be declared dead, which takes
	// up to two leases.
	leaderTimeout = 10 * time.Second
	leaderPoll    = 100 * time.Millisecond
)

// ControlConfig configures a control process. Client, Store and Logger are required.
type ControlConfig struct {
	Client *Connection
	Store  *store.Store
	Logger *slog.Logger
	// Version is the version of this program, which the leader reports.
	Version string
	// Metrics exposes the fleet while this process leads. It may be nil.
	Metrics *metrics.Metrics
	// PrivateStore is true if the store is deleted with the process and so cannot serve a fleet.
	PrivateStore bool
	// Role is the role in the fleet. "" means RoleAuto.
	Role Role
	// Retention is how long the store keeps the values of a closed run. 0 means DefaultRetention.
	Retention time.Duration
	// CleanupInterval is the time between two removals of expired values. 0 means DefaultCleanupInterval.
	CleanupInterval time.Duration
	// Leader sets the lease of the leader, for the fleet while this process leads.
	Leader election.Timing
	// Weights holds the factors of a node's score. nil means placement.DefaultWeights.
	Weights *placement.Weights
	// FIFO and FairHalfLife set the order of tasks with the same priority; see placement.Options.
	FIFO         bool
	FairHalfLife time.Duration
	// Defaults holds the settings for child runs, and for runs that Temporal starts, that do not set them.
	Defaults definition.RunDefaults
	// Sender delivers notifications. nil means one that can open no secrets and reaches only the public internet.
	Sender *notifications.Sender
	// Notify holds the entries of the fleet: whom to tell about all runs that no other run has started.
	Notify []*v1.Notification
	// ExternalURL returns the URL at which people open the page, or "" if it is not known. nil means that it is not known.
	ExternalURL func() string
	// GrantNodes makes the store record which node was given which task, for gateways that require tokens of nodes.
	GrantNodes bool

	// ServerStarted is when this process started the server that it uses, or zero if another process did. The server
	// was unavailable before that time.
	ServerStarted time.Time

	// Limits, Registrar and Locker replace the defaults of the workflows in tests.
	Limits    limits.Run
	Registrar node.Registrar
	Locker    lock.Locker

	// server watches the availability of the server.
	server *serverWatch
	// Tests set smaller values than the defaults.
	sweepInterval time.Duration
	lockDir       string // replaces the machine's folder in tests
}

func (c ControlConfig) validate() error {
	switch {
	case c.Client == nil:
		return fmt.Errorf("control worker: Client is missing")
	case c.Store == nil:
		return fmt.Errorf("control worker: Store is missing")
	case c.Logger == nil:
		return fmt.Errorf("control worker: Logger is missing")
	}
	if c.CleanupInterval != 0 && c.CleanupInterval < MinCleanupInterval {
		return fmt.Errorf("control worker: CleanupInterval is below %s", MinCleanupInterval)
	}
	if err := errors.Join(c.Defaults.Validate(), c.Leader.Validate()); err != nil {
		return fmt.Errorf("control worker: %w", err)
	}
	_, err := ParseRole(string(c.Role))
	return err
}

// Control is a control process. It shares the registry of nodes with the other control processes, and carries the runs
// while it leads.
type Control struct {
	cfg      ControlConfig
	election worker.Worker // nil for an observer
	look     chan struct{} // has room for one request to check the election at once
	cancel   context.CancelFunc
	loops    sync.WaitGroup
	stop     sync.Once

	mu       sync.Mutex
	term     *term                // nil while another process leads
	expected map[string]time.Time // node -> expected until
}

// StartControl starts a control process. It waits for leadership only if the role is RoleLeader,
// and then fails if another process owns it. It also fails if the leader of the fleet has another store. Stop ends the
// process's part.
func StartControl(ctx context.Context, cfg ControlConfig) (*Control, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Role, _ = ParseRole(string(cfg.Role))
	if cfg.Sender == nil {
		cfg.Sender = notifications.NewSender(notifications.NewTargets(cfg.Store, time.Now), nil, nil, time.Now)
	}
	if cfg.ExternalURL == nil {
		cfg.ExternalURL = func() string { return "" }
	}
	storeID, err := cfg.sharedStore(ctx)
	if err != nil {
		return nil, err
	}
	loopsCtx, cancel := context.WithCancel(context.Background())
	cfg.server = &serverWatch{awayUntil: cfg.ServerStarted}
	c := &Control{cfg: cfg, look: make(chan struct{}, 1), cancel: cancel, expected: map[string]time.Time{}}
	if cfg.Role == RoleObserver {
		return c, nil
	}
	c.election = worker.New(cfg.Client.Client, names.ElectionQueue, worker.Options{
		// A process without activities never becomes the leader.
		LocalActivityWorkerOnly:          !cfg.Role.candidate(),
		MaxConcurrentActivityTaskPollers: 1,
		StickyScheduleToStartTimeout:     stickyTimeout,
		DeadlockDetectionTimeout:         deadlockTimeout,
		WorkerStopTimeout:                electionStopTimeout,
		WorkflowTaskPollerBehavior:       workflowPollers,
	})
	c.election.RegisterWorkflowWithOptions(cfg.Registrar.Node, workflow.RegisterOptions{Name: names.NodeWorkflow})
	c.election.RegisterWorkflowWithOptions(electionworkflow.Leader, workflow.RegisterOptions{Name: names.LeaderWorkflow})
	if cfg.Role.candidate() {
		if err := ensureAttributes(ctx, cfg.Client); err != nil {
			cancel()
			return nil, err
		}
		candidate := &election.Candidate{Client: cfg.Client, Identity: processIdentity(), Version: cfg.Version, Store: storeID, PrivateStore: cfg.PrivateStore, Timing: cfg.Leader, Lock: cfg.holdLeadership, Begin: c.begin, Logger: cfg.Logger}
		c.election.RegisterActivityWithOptions(candidate.Lead, activity.RegisterOptions{Name: names.LeadActivity})
	}
	if err := c.election.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start control worker: %w", err)
	}
	if !cfg.Role.candidate() {
		return c, nil
	}
	c.loops.Go(func() { c.elect(loopsCtx) })
	c.loops.Go(func() { cfg.server.run(loopsCtx, registry.New(cfg.Client)) })
	if cfg.Role == RoleLeader {
		if err := c.lead(ctx); err != nil {
			c.Stop()
			return nil, err
		}
	}
	return c, nil
}

// elect keeps the workflow Leader open, so that there is always an election.
func (c *Control) elect(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.look:
		}
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		_, err := c.cfg.Client.ExecuteWorkflow(callCtx, client.StartWorkflowOptions{
			ID:                       names.LeaderWorkflowID,
			TaskQueue:                names.ElectionQueue,
			WorkflowTaskTimeout:      leaderTaskTimeout,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
			EnableEagerStart:         true,
			StaticSummary:            "leader election",
		}, names.LeaderWorkflow, &historyv1.LeaderInput{})
		cancel()
		if err == nil {
			c.cfg.relieve(ctx)
		}
		if err != nil && ctx.Err() == nil {
			c.cfg.Logger.Warn("cannot look up the leader", "error", err)
		}
		timer.Reset(leaderCheckInterval)
	}
}

// lead returns once this process leads. It fails at once if another leader still heartbeats, and
// waits for a silent leader that may be dead.
func (c *Control) lead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(leaderTimeout, 2*c.cfg.Leader.WithDefaults().Lease))
	defer cancel()
	reg := registry.New(c.cfg.Client)
	var first time.Time
	var leader *historyv1.LeaderHeartbeat
	for {
		if c.current() != nil {
			return nil
		}
		beat, at, err := reg.Leader(ctx)
		if err == nil && beat != nil {
			if first.IsZero() || leader.GetEpoch() != beat.GetEpoch() {
				first, leader = at, beat
			}
			if at.After(first) && c.current() == nil {
				return ledBy(beat)
			}
		}
		select {
		case <-ctx.Done():
			if leader != nil {
				return ledBy(leader)
			}
			return fmt.Errorf("own the placement queue: %w", errors.Join(ctx.Err(), err))
		case <-time.After(leaderPoll):
		}
	}
}

func ledBy(b *historyv1.LeaderHeartbeat) error {
	return fmt.Errorf("the placement queue is owned by %s (since %s); use --role auto to stand by",
		b.GetIdentity(), b.GetSince().AsTime().Local().Format(time.DateTime))
}

// begin starts a term of this process.
func (c *Control) begin(epoch string, valid func() bool) (election.Term, error) {
	t, err := startTerm(c.cfg, epoch, valid)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.term = t
	t.fleet.expect(c.expected)
	return ending{t, c}, nil
}

// ending is a term that the process forgets when the term ends.
type ending struct {
	*term
	control *Control
}

func (e ending) Stop() {
	e.control.mu.Lock()
	if e.control.term == e.term {
		e.control.term = nil
	}
	e.control.mu.Unlock()
	e.term.Stop()
	// The term may have ended because the election did.
	select {
	case e.control.look <- struct{}{}:
	default:
	}
}

func (c *Control) current() *term {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.term
}

// IsLeader reports whether this process currently leads.
func (c *Control) IsLeader() bool {
	t := c.current()
	return t != nil && t.valid()
}

// ExpectNodes makes the leader read nodes that are about to register, before visibility lists them.
func (c *Control) ExpectNodes(nodes ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := time.Now().Add(expectFor)
	expected := map[string]time.Time{}
	for _, n := range nodes {
		expected[n] = until
	}
	maps.Copy(c.expected, expected)
	if c.term != nil {
		c.term.fleet.expect(expected)
	}
}

// Stop ends the process's part, hands over what it owns, and returns when that is done. A second Stop is a no-op.
func (c *Control) Stop() {
	c.stop.Do(func() {
		c.cancel()
		c.loops.Wait()
		if c.election != nil {
			c.election.Stop()
		}
	})
}

// processIdentity returns a name of this process for people.
func processIdentity() string { return ProcessIdentity(os.Getpid()) }

// ProcessIdentity returns the identity of a process of this machine in the heartbeats of leaders.
func ProcessIdentity(pid int) string {
	host, _ := os.Hostname() // without a host name, the process number must suffice
	return fmt.Sprintf("%s (process %d)", host, pid)
}
