package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell"
	"switchyard/activities/store"
	"switchyard/dev/embedded"
	"switchyard/gateway"
	"switchyard/workers"
)

// stackConfig says which parts of Switchyard run in this process.
type stackConfig struct {
	// Temporal starts an embedded server; nil: the one that Temporal's own
	// environment names is used.
	Temporal *embedded.Options
	// Store is the URL of the store; empty: a private folder that goes with the stack.
	Store string
	// Control starts the control role.
	Control bool
	// Gateway is the address to serve the API at; empty: none.
	Gateway string
	// GatewayFlag is the flag that chooses another address when that one is taken.
	GatewayFlag string
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
}

type closer struct {
	name string
	stop func() error
}

// stopWarning is how long the stop of a part may take before it is said.
const stopWarning = 5 * time.Second

// startStack starts the parts. When one does not start, those before it are stopped.
func startStack(ctx context.Context, cfg stackConfig) (_ *stack, err error) {
	// Without it, the SDK reads and hashes the whole binary before its first poll.
	worker.SetBinaryChecksum(version())
	s := &stack{logger: cfg.Logger}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	private, err := openScratch(os.TempDir())
	if err != nil {
		return nil, err
	}
	cfg.Leftovers.add(private.dir)
	s.onStop("private folder", private.close)
	private.sweep()

	if cfg.Store == "" {
		cfg.Store = filepath.Join(private.dir, "store")
	}
	if s.store, err = store.Open(ctx, cfg.Store); err != nil {
		return nil, err
	}
	s.onStop("store", s.store.Close)
	dial := workers.DialOptions{Logger: cfg.Logger}
	if cfg.Temporal != nil {
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
		control, err := workers.StartControl(ctx, workers.ControlConfig{Client: s.conn, Store: s.store, Logger: cfg.Logger})
		if err != nil {
			return nil, err
		}
		s.onStop("control worker", func() error { control.Stop(); return nil })
		for _, n := range cfg.Nodes {
			control.ExpectNodes(n.Name)
		}
	}
	if err = s.startNodes(ctx, cfg, private.dir); err != nil {
		return nil, err
	}
	if cfg.Gateway != "" {
		api, err := gateway.New(gateway.Config{Client: s.conn, Store: s.store, Logger: cfg.Logger, Version: version()})
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
	return s, nil
}

// startNodes starts the nodes side by side. They share this machine, and the
// one executor of each type.
func (s *stack) startNodes(ctx context.Context, cfg stackConfig, scratch string) error {
	if len(cfg.Nodes) == 0 {
		return nil
	}
	sh, err := shell.New(shell.Options{Watchdog: true, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	s.onStop("shell executor", sh.Close)
	machine := workers.ThisMachine(ctx)
	nodes := make([]*workers.Node, len(cfg.Nodes))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, n := range cfg.Nodes {
		group.Go(func() (err error) {
			nodes[i], err = workers.StartNode(groupCtx, workers.NodeConfig{
				Client: s.conn, Store: s.store, Logger: cfg.Logger, Machine: machine,
				Executors: []executor.Executor{sh}, ScratchDir: filepath.Join(scratch, "attempts"),
				Name: n.Name, Labels: n.Labels, Capabilities: n.Capabilities,
				MaxParallel: n.MaxParallel, WorkDir: n.WorkDir, SharedDir: n.SharedDir,
			})
			return err
		})
	}
	err = group.Wait()
	s.onStop("nodes", func() error {
		var stopping errgroup.Group
		for _, n := range nodes {
			if n != nil {
				stopping.Go(func() error { n.Stop(); return nil })
			}
		}
		return stopping.Wait()
	})
	return err
}

func (s *stack) onStop(name string, stop func() error) {
	s.closers = append(s.closers, closer{name, stop})
}

// stop ends every part that was started. A second stop does nothing.
func (s *stack) stop() error {
	var errs []error
	for len(s.closers) > 0 {
		c := s.closers[len(s.closers)-1]
		s.closers = s.closers[:len(s.closers)-1]
		slow := time.AfterFunc(stopWarning, func() { s.logger.Warn("still stopping", "part", c.name) })
		if err := c.stop(); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", c.name, err))
		}
		slow.Stop()
	}
	return errors.Join(errs...)
}
