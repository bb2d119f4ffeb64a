package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container"
	"switchyard/activities/executor/shell"
	"switchyard/activities/metrics"
	"switchyard/activities/placement"
	"switchyard/activities/store"
	"switchyard/dev/embedded"
	"switchyard/gateway"
	"switchyard/workers"
	"switchyard/workers/node"
	"switchyard/workflows/definition"
	"switchyard/workflows/visibility"
)

// stackConfig says which parts of Switchyard run in this process.
type stackConfig struct {
	// Temporal starts an embedded server; nil: the one that Temporal's own
	// environment names is used.
	Temporal *embedded.Options
	// Store is the URL of the store; empty: a private folder that goes with the stack.
	Store string
	// SpoolDir is where values are kept while a store that is a gateway is away.
	SpoolDir string
	// Control starts a control process, and Role says which part it takes; empty: workers.RoleAuto.
	Control bool
	Role    workers.Role
	// Retention is how long the store keeps what a closed run has left; 0: workers.DefaultRetention.
	Retention time.Duration
	// LogQuota bounds the logs of each run, in bytes, where this process writes to the store itself; 0: no limit.
	LogQuota int64
	// Weights are the factors of a node's score; nil: the defaults.
	Weights *placement.Weights
	// Defaults are what runs are given that do not say otherwise.
	Defaults definition.RunDefaults
	// Gateway is the address to serve the API at; empty: none.
	Gateway string
	// GatewayFlag is the flag that chooses another address when that one is taken.
	GatewayFlag string
	// AllowedHosts are the names under which the gateway and the Web UI answer besides those of the machine.
	AllowedHosts []string
	// Metrics keeps figures for Prometheus, which the gateway serves.
	Metrics bool
	// MetricsAddress is where they are served, and so kept, in a process without a gateway; empty: nowhere.
	MetricsAddress string
	// MetricsOptional says that the process starts although that address is taken.
	MetricsOptional bool
	// Nodes are the nodes to start.
	Nodes  []nodeConfig
	Logger *slog.Logger
	// Leftovers is told of the private folder.
	Leftovers *leftovers
}

// nodeConfig is a node as flags describe it.
type nodeConfig struct {
	Name         string
	Labels       []string
	Capabilities map[string]string
	MaxParallel  int
	WorkDir      string
	SharedDir    string
	// ScratchDir is where attempts get their private directories; empty: the folder for temporary files. The nodes of a
	// process share it.
	ScratchDir string
	// LocalTempDir is where attempts get their temporary directories; empty: in their private ones. The nodes of a process
	// share it.
	LocalTempDir string
	// PassEnv are variables of this process that shell tasks get, too. The nodes of a process share it.
	PassEnv []string
	// MaxOutput is how much output of an attempt its log keeps, in bytes.
	MaxOutput int64
	// OfflineAfter is how long the node may be silent before it counts as lost; 0: 15 s.
	OfflineAfter time.Duration
	// DrainTimeout is how long its attempts may go on when the node stops; 0: they are moved at once.
	DrainTimeout time.Duration
	// Gaming are the rules by which it is told that somebody plays on the machine; nil: the defaults.
	Gaming *node.GamingRules
	// Containers is what containers may do on the node. The nodes of a process share it.
	Containers containerConfig
}

// stack is a running set of parts. They are stopped in the reverse order of
// their start.
type stack struct {
	logger  *slog.Logger
	closers []closer

	temporal *embedded.Server // nil when another server is used
	conn     *workers.Connection
	store    *store.Store
	gateway  *gateway.Server // nil without one
	metrics  *metrics.Server // nil without one of its own
	failed   chan error      // has room for one: why a node cannot go on
	// hurry is done when the nodes shall stop without waiting for their attempts.
	hurry    context.Context
	hurryNow context.CancelFunc
	// drain takes the nodes out of service; nil without nodes.
	drain func() error
	// deadline is when every part is to have stopped; nil: stopTimeout after the stop begins.
	deadline atomic.Pointer[time.Time]
	uncut    func() bool // the end of the context of the start sets no deadline any more
}

// Failed tells why a node cannot go on.
func (s *stack) Failed() <-chan error { return s.failed }

// Hurry has a stop under way, or one to come, wait for no attempt.
func (s *stack) Hurry() { s.hurryNow() }

// StopWithin has every part stopped within a time, if no deadline is nearer.
func (s *stack) StopWithin(d time.Duration) {
	deadline := time.Now().Add(d)
	for {
		old := s.deadline.Load()
		if old != nil && old.Before(deadline) || s.deadline.CompareAndSwap(old, &deadline) {
			return
		}
	}
}

// closer stops a part. One that takes longer than its timeout is left to the end of the process.
type closer struct {
	name    string
	timeout time.Duration
	stop    func() error
}

// trimAfter is when what only the start of a worker has needed has been used.
const trimAfter = 3 * time.Second

const (
	// stopTimeout is how long the stop of all parts may take.
	stopTimeout = 13 * time.Second
	// partStopTimeout is how long the stop of one part may take.
	partStopTimeout = 5 * time.Second
	// nodesStopTimeout is the same for the nodes: a task gets 10 s between SIGTERM and SIGKILL.
	nodesStopTimeout = 11 * time.Second
	// leastStopTimeout is what a part gets when the others have used up the time.
	leastStopTimeout = 200 * time.Millisecond
	// stopWarning is how long the stop of a part may take before it is said.
	stopWarning = 5 * time.Second
)

// startStack starts the parts. When one does not start, those before it are stopped.
func startStack(ctx context.Context, cfg stackConfig) (_ *stack, err error) {
	// Without it, the SDK reads and hashes the whole binary before its first poll.
	worker.SetBinaryChecksum(version())
	s := &stack{logger: cfg.Logger, failed: make(chan error, 1)}
	s.hurry, s.hurryNow = context.WithCancel(context.Background())
	s.uncut = context.AfterFunc(ctx, func() { s.StopWithin(stopTimeout) })
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	scratchDir := os.TempDir()
	if len(cfg.Nodes) > 0 {
		scratchDir = cmp.Or(cfg.Nodes[0].ScratchDir, scratchDir)
	}
	private, err := openScratch(scratchDir)
	if err != nil {
		return nil, err
	}
	cfg.Leftovers.add(private.dir)
	s.onStop("private folder", private.close)
	private.sweep()
	tempDir, err := s.openTemp(cfg)
	if err != nil {
		return nil, err
	}

	// Nobody else can use it on a Temporal that others use, too.
	privateStore := cfg.Store == "" && cfg.Temporal == nil
	if cfg.Store == "" {
		cfg.Store = filepath.Join(private.dir, "store")
	}
	if s.store, err = openStore(ctx, cfg); err != nil {
		return nil, err
	}
	s.onStop("store", s.store.Close)
	figures, err := s.startMetrics(ctx, cfg)
	if err != nil {
		return nil, err
	}
	dial := workers.DialOptions{Metrics: figures, Logger: cfg.Logger}
	if cfg.Temporal != nil {
		cfg.Temporal.SearchAttributes = visibility.Types()
		cfg.Temporal.UIHosts = cfg.AllowedHosts
		if s.temporal, err = embedded.Start(ctx, *cfg.Temporal); err != nil {
			return nil, err
		}
		s.onStop("Temporal", s.temporal.Stop)
		dial.Address, dial.Namespace = s.temporal.Address(), s.temporal.Namespace()
	}
	if s.conn, err = workers.Dial(ctx, dial); err != nil {
		return nil, err
	}
	s.onStop("Temporal client", func() error { s.conn.Close(); return nil })
	if cfg.Control {
		control, err := workers.StartControl(ctx, workers.ControlConfig{Client: s.conn, Store: s.store, Metrics: figures, Logger: cfg.Logger, Role: cfg.Role, Retention: cfg.Retention, Weights: cfg.Weights, Defaults: cfg.Defaults, PrivateStore: privateStore})
		if err != nil {
			return nil, err
		}
		s.onStop("control worker", func() error { control.Stop(); return nil })
		for _, n := range cfg.Nodes {
			control.ExpectNodes(n.Name)
		}
	}
	if err = s.startNodes(ctx, cfg, figures, private.dir, tempDir); err != nil {
		return nil, err
	}
	if cfg.Gateway != "" {
		api, err := gateway.New(gateway.Config{
			Client: s.conn, Namespace: s.conn.Namespace, Store: s.store, Logger: cfg.Logger, Version: version(),
			Metrics: figures, Observer: cfg.Role == workers.RoleObserver, Hosts: cfg.AllowedHosts, Defaults: cfg.Defaults,
		})
		if err != nil {
			return nil, err
		}
		s.gateway, err = api.Listen(ctx, cfg.Gateway)
		if errors.Is(err, syscall.EADDRINUSE) {
			api.Close()
			return nil, fmt.Errorf("the address of the gateway, %s, is taken; choose another with %s, or stop what listens there", cfg.Gateway, cfg.GatewayFlag)
		}
		if err != nil {
			api.Close()
			return nil, err
		}
		s.onStop("gateway", s.gateway.Close)
	}
	if cfg.Temporal == nil {
		// A server needs more than that of its program all the time.
		timer := time.AfterFunc(trimAfter, func() {
			if err := trim(); err != nil {
				cfg.Logger.Debug("pages of the program are not given back", "error", err)
			}
		})
		s.onStop("memory", func() error { timer.Stop(); return nil })
	}
	return s, nil
}

// openTemp makes the private folder for the temporary directories of attempts, or returns "" if they have none of their own.
func (s *stack) openTemp(cfg stackConfig) (dir string, err error) {
	if len(cfg.Nodes) == 0 || cfg.Nodes[0].LocalTempDir == "" {
		return "", nil
	}
	temp, err := openScratch(cfg.Nodes[0].LocalTempDir)
	if err != nil {
		return "", err
	}
	cfg.Leftovers.add(temp.dir)
	s.onStop("folder for temporary files", temp.close)
	temp.sweep()
	return filepath.Join(temp.dir, "attempts"), nil
}

// startNodes starts the nodes side by side. They share this machine, and the
// one executor of each type.
func (s *stack) startNodes(ctx context.Context, cfg stackConfig, figures *metrics.Metrics, scratch, temp string) error {
	if len(cfg.Nodes) == 0 {
		return nil
	}
	sh, err := shell.New(shell.Options{Watchdog: true, PassEnv: cfg.Nodes[0].PassEnv, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	s.onStop("shell executor", sh.Close)
	allowed := cfg.Nodes[0].Containers
	containers, err := container.New(container.Options{
		Policy: allowed.Policy, Mounts: allowed.Mounts, RegistryAuth: allowed.RegistryAuth, OpenTarball: store.OpenObject, Logger: cfg.Logger,
	})
	if err != nil {
		return fmt.Errorf("container engine: %w", err)
	}
	s.onStop("container executor", containers.Close)
	guards := &guards{logger: cfg.Logger}
	s.onStop("guards", guards.close)
	found := make(chan node.Facts, 1)
	go func() { found <- node.Detect(ctx, node.SystemSurroundings(cfg.Logger)) }()
	machine := workers.ThisMachine(ctx)
	facts := <-found
	if err := sh.CanSandbox(); err == nil {
		facts.Sandbox = true
	} else {
		cfg.Logger.Debug("shell tasks cannot run in a sandbox here", "reason", err)
	}
	nodes := make([]*workers.Node, len(cfg.Nodes))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, n := range cfg.Nodes {
		group.Go(func() (err error) {
			nodes[i], err = workers.StartNode(groupCtx, workers.NodeConfig{
				Client: s.conn, Store: s.store, Metrics: figures, Logger: cfg.Logger, Machine: machine,
				Executors: []executor.Executor{sh, containers}, ScratchDir: filepath.Join(scratch, "attempts"), StateDir: n.ScratchDir,
				TempDir: temp, LastingTempDir: n.LocalTempDir,
				Guard: func(dir string) { guards.start(dir, n.Name) },
				Name:  n.Name, Labels: n.Labels, Capabilities: facts.Capabilities(n.Capabilities),
				MaxParallel: n.MaxParallel, WorkDir: n.WorkDir, SharedDir: n.SharedDir, MaxOutput: n.MaxOutput,
				OfflineAfter: n.OfflineAfter, Gaming: n.Gaming, Containers: n.Containers.Policy, MetricsURL: s.metricsURL(),
			})
			return err
		})
	}
	err = group.Wait()
	stopped := make(chan struct{})
	var watching errgroup.Group
	for _, n := range nodes {
		if n == nil {
			continue
		}
		watching.Go(func() error {
			select {
			case <-n.Failed():
				select {
				case s.failed <- n.Err():
				default: // one is enough to stop
				}
			case <-stopped:
			}
			return nil
		})
	}
	each := func(do func(int, *workers.Node)) error {
		var group errgroup.Group
		for i, n := range nodes {
			if n != nil {
				group.Go(func() error { do(i, n); return nil })
			}
		}
		return group.Wait()
	}
	s.drain = func() error {
		return each(func(i int, n *workers.Node) { n.Drain(s.hurry, cfg.Nodes[i].DrainTimeout) })
	}
	s.closers = append(s.closers, closer{"nodes", nodesStopTimeout, func() error {
		close(stopped)
		return errors.Join(each(func(_ int, n *workers.Node) { n.Stop() }), watching.Wait())
	}})
	return err
}

func (s *stack) onStop(name string, stop func() error) {
	s.closers = append(s.closers, closer{name, partStopTimeout, stop})
}

// stop drains the nodes, which has a time limit of its own, and ends every part that
// was started. A part that is still stopping at its timeout, or at the deadline of
// all, is left to the end of the process. A second stop does nothing.
func (s *stack) stop() error {
	s.uncut()
	if s.drain != nil {
		began := time.Now()
		_ = s.drain() // none fails
		s.drain = nil
		if deadline := s.deadline.Load(); deadline != nil {
			later := deadline.Add(time.Since(began))
			s.deadline.CompareAndSwap(deadline, &later)
		}
	}
	s.StopWithin(stopTimeout)
	var errs []error
	for len(s.closers) > 0 {
		c := s.closers[len(s.closers)-1]
		s.closers = s.closers[:len(s.closers)-1]
		slow := time.AfterFunc(stopWarning, func() { s.logger.Warn("still stopping", "part", c.name) })
		if err := s.stopPart(c); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", c.name, err))
		}
		slow.Stop()
	}
	return errors.Join(errs...)
}

func (s *stack) stopPart(c closer) error {
	limit := max(min(c.timeout, time.Until(*s.deadline.Load())), leastStopTimeout)
	stopped := make(chan error, 1)
	go func() { stopped <- c.stop() }()
	select {
	case err := <-stopped:
		return err
	case <-time.After(limit):
		return fmt.Errorf("it has not stopped within %s, and ends with the process", limit.Round(time.Millisecond))
	}
}
