package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	"switchyard/activities/placement"
	"switchyard/activities/registry"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	electionworkflow "switchyard/workflows/election"
	"switchyard/workflows/limits"
	"switchyard/workflows/lock"
	"switchyard/workflows/names"
	"switchyard/workflows/node"
)

const (
	// ownerInterval is how often a candidate looks that the workflow Owner is there.
	ownerInterval = 10 * time.Second
	// ownerTaskTimeout is how long a process may take for a step of Owner before another one gets it.
	ownerTaskTimeout = 5 * time.Second
	// electionStopTimeout is how long the election worker waits for its term to end.
	electionStopTimeout = 10 * time.Second
	// leaderTimeout is how long a leader waits for an owner to turn out dead.
	leaderTimeout = 10 * time.Second
	leaderPoll    = 100 * time.Millisecond
)

// ControlConfig is what a control process needs. Client, Store and Logger are required.
type ControlConfig struct {
	Client *Connection
	Store  *store.Store
	Logger *slog.Logger
	// Metrics shows the fleet while this process owns the placement queue; nil: nothing does.
	Metrics *metrics.Metrics
	// PrivateStore says that the store goes with the process, and cannot become a fleet's.
	PrivateStore bool
	// Role in the fleet; empty: RoleAuto.
	Role Role
	// Retention is how long the store keeps what a closed run has left; 0: DefaultRetention.
	Retention time.Duration
	// Weights are the factors of a node's score; nil: placement.DefaultWeights.
	Weights *placement.Weights
	// Defaults are what child runs, and runs that Temporal starts, are given that do not say otherwise.
	Defaults definition.RunDefaults
	// GrantNodes has the store hold which node was given which task, for gateways that ask nodes for tokens.
	GrantNodes bool

	// ServerStarted is when this process has started the server that it uses, or zero if another one has. The server was
	// away before.
	ServerStarted time.Time

	// server is that of the process.
	server *serverWatch
	// Smaller than their defaults in tests.
	limits        limits.Run
	registrar     node.Registrar
	locker        lock.Locker
	sweepInterval time.Duration
	lockDir       string // another than the machine's
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
	if err := c.Defaults.Validate(); err != nil {
		return fmt.Errorf("control worker: %w", err)
	}
	_, err := ParseRole(string(c.Role))
	return err
}

// Control is a control process. It keeps the registry of nodes together with the
// others, and while it owns the placement queue it carries the runs.
type Control struct {
	cfg      ControlConfig
	election worker.Worker // nil for an observer
	look     chan struct{} // has room for one: look at once that there is an election
	cancel   context.CancelFunc
	loops    sync.WaitGroup
	stop     sync.Once

	mu       sync.Mutex
	term     *term                // nil while another process owns the placement queue
	expected map[string]time.Time // node -> until when
}

// StartControl starts a control process. It does not wait until the process owns
// the placement queue, unless its role is RoleLeader: then it is an error that
// another one does. A fleet whose owner has another store is an error. Stop ends it.
func StartControl(ctx context.Context, cfg ControlConfig) (*Control, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Role, _ = ParseRole(string(cfg.Role))
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
		// Without activities this process is never the owner.
		LocalActivityWorkerOnly:          !cfg.Role.candidate(),
		MaxConcurrentActivityTaskPollers: 1,
		StickyScheduleToStartTimeout:     stickyTimeout,
		DeadlockDetectionTimeout:         deadlockTimeout,
		WorkerStopTimeout:                electionStopTimeout,
	})
	c.election.RegisterWorkflowWithOptions(cfg.registrar.Node, workflow.RegisterOptions{Name: names.NodeWorkflow})
	c.election.RegisterWorkflowWithOptions(electionworkflow.Owner, workflow.RegisterOptions{Name: names.OwnerWorkflow})
	if cfg.Role.candidate() {
		if err := ensureAttributes(ctx, cfg.Client); err != nil {
			cancel()
			return nil, err
		}
		own := &election.Candidate{Client: cfg.Client, Identity: processIdentity(), Store: storeID, PrivateStore: cfg.PrivateStore, Lock: cfg.lockOwner, Begin: c.begin, Logger: cfg.Logger}
		c.election.RegisterActivityWithOptions(own.Own, activity.RegisterOptions{Name: names.OwnActivity})
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

// elect sees to it that there is an election: the workflow Owner is open.
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
			ID:                       names.OwnerWorkflowID,
			TaskQueue:                names.ElectionQueue,
			WorkflowTaskTimeout:      ownerTaskTimeout,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
			EnableEagerStart:         true,
			StaticSummary:            "who owns the placement queue",
		}, names.OwnerWorkflow, &v1.OwnerInput{})
		cancel()
		if err == nil {
			c.cfg.relieve(ctx)
		}
		if err != nil && ctx.Err() == nil {
			c.cfg.Logger.Warn("the owner of the placement queue could not be looked up", "error", err)
		}
		timer.Reset(ownerInterval)
	}
}

// lead returns when this process owns the placement queue. Another owner that
// still beats is an error at once, one that is silent may be dead and is waited for.
func (c *Control) lead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	reg := registry.New(c.cfg.Client)
	var first time.Time
	var owner *v1.OwnerBeat
	for {
		if c.current() != nil {
			return nil
		}
		beat, at, err := reg.Owner(ctx)
		if err == nil && beat != nil {
			if first.IsZero() || owner.GetEpoch() != beat.GetEpoch() {
				first, owner = at, beat
			}
			if at.After(first) && c.current() == nil {
				return ownedBy(beat)
			}
		}
		select {
		case <-ctx.Done():
			if owner != nil {
				return ownedBy(owner)
			}
			return fmt.Errorf("own the placement queue: %w", errors.Join(ctx.Err(), err))
		case <-time.After(leaderPoll):
		}
	}
}

func ownedBy(b *v1.OwnerBeat) error {
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

// ending is a term that its process forgets when it is over.
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
	// The election itself may be what has ended.
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

// Owns reports whether this process owns the placement queue now.
func (c *Control) Owns() bool { return c.current() != nil }

// ExpectNodes has the owner look for nodes that are about to register, without
// waiting until visibility lists them.
func (c *Control) ExpectNodes(nodes ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := time.Now().Add(expectFor)
	for _, n := range nodes {
		c.expected[n] = until
	}
	if c.term != nil {
		c.term.fleet.expect(c.expected)
	}
}

// Stop ends the process's part, hands over what it owns, and returns when that is
// done. A second Stop does nothing.
func (c *Control) Stop() {
	c.stop.Do(func() {
		c.cancel()
		c.loops.Wait()
		if c.election != nil {
			c.election.Stop()
		}
	})
}

// processIdentity names this process for people.
func processIdentity() string {
	host, _ := os.Hostname() // without one, the process number has to do
	return fmt.Sprintf("%s (process %d)", host, os.Getpid())
}
