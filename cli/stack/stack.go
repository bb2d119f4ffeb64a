package stack

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

	"switchyard/activities/executor/k8sjob/cluster"
	"switchyard/activities/gatewayclient"
	"switchyard/activities/metrics"
	"switchyard/activities/notifications"
	"switchyard/activities/secrets/vault"
	"switchyard/activities/store"
	"switchyard/gateway"
	"switchyard/gateway/tunnel"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers"
	"switchyard/workers/embedded"
	"switchyard/workflows/visibility"
)

// Stack is a running set of parts. Stop stops them in reverse start order.
type Stack struct {
	logger  *slog.Logger
	closers []closer

	temporal *embedded.Server // nil if another server is used
	conn     *workers.Connection
	store    *store.Store
	gateways *gatewayclient.Conn // the nodes' own connection to the gateways of their fleet, or nil if they have none
	clusters *cluster.Clusters   // of the nodes, or nil without nodes
	gateway  *gateway.Server     // nil without a gateway
	metrics  *metrics.Server     // nil without a metrics server of its own
	// gatewayURL is where tasks reach the gateway. It is nil until a gateway is known.
	gatewayURL atomic.Pointer[string]
	// sessions is the hub to which the nodes of this process connect for sessions. It is nil until the gateway serves.
	sessions atomic.Pointer[tunnel.Hub]
	vault    *vault.Vault
	// adminTokenFile is "" if this stack has created no token.
	adminTokenFile string
	failed         chan error // has room for one error of a node that cannot continue
	// drainSkipped is done when the nodes must stop without waiting for their attempts.
	drainSkipped context.Context
	skipDrain    context.CancelFunc
	// graceEnded is done when attempts that have been asked to end must be killed.
	graceEnded context.Context
	endGrace   context.CancelFunc
	// nodes are the nodes of this process.
	nodes []*workers.Node
	// drain takes the nodes out of service. It is nil without nodes.
	drain func() error
	// deadline is when every part must have stopped. nil means stopTimeout after the stop begins.
	deadline    atomic.Pointer[time.Time]
	ignoreStart func() bool // stops the context of Start from setting the deadline
}

// Temporal returns the embedded server, or nil if the stack uses another one.
func (s *Stack) Temporal() *embedded.Server { return s.temporal }

// Store returns the store of the stack.
func (s *Stack) Store() *store.Store { return s.store }

// Gateway returns the API server, or nil if the stack has none.
func (s *Stack) Gateway() *gateway.Server { return s.gateway }

// Failed returns a channel that receives the error of a node that cannot continue.
func (s *Stack) Failed() <-chan error { return s.failed }

// SkipDrain makes a current or later Stop not wait for attempts.
func (s *Stack) SkipDrain() { s.skipDrain() }

// ExtraGrace returns how much longer than the usual 10 s one of the running attempts may take to end after its stop signal.
func (s *Stack) ExtraGrace() time.Duration {
	extra := time.Duration(0)
	for _, n := range s.nodes {
		extra = max(extra, n.ExtraGrace())
	}
	return extra
}

// EndGrace kills attempts that are asked to end, now or later, without their time between the stop signal and SIGKILL.
func (s *Stack) EndGrace() { s.endGrace() }

// releaseMemoryAfter is how long after the start of a worker the pages that only the start needed are released.
const releaseMemoryAfter = 3 * time.Second

// Start starts the parts. If a part fails to start, Start stops the parts before it.
func Start(ctx context.Context, cfg Config) (_ *Stack, err error) {
	// Without a checksum, the SDK reads and hashes the whole binary before its first poll.
	worker.SetBinaryChecksum(cfg.Version)
	cfg.Logger.Info("starting", "version", cfg.Version, "dataLevel", historyv1.ReadableDataLevel())
	s := &Stack{logger: cfg.Logger, failed: make(chan error, 1)}
	s.drainSkipped, s.skipDrain = context.WithCancel(context.Background())
	s.graceEnded, s.endGrace = context.WithCancel(context.Background())
	s.ignoreStart = context.AfterFunc(ctx, func() { s.StopWithin(stopTimeout) })
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	scratchDir := os.TempDir()
	if len(cfg.Nodes) > 0 {
		scratchDir = cmp.Or(cfg.Nodes[0].ScratchDir, scratchDir)
	}
	private, err := newPrivateFolder(scratchDir)
	if err != nil {
		return nil, err
	}
	cfg.ExitFolders.Add(private.dir)
	s.addCloser("private folder", private.close)
	private.removeAbandoned()
	tempDir, err := s.openTempFolder(cfg)
	if err != nil {
		return nil, err
	}

	// Other users of an external Temporal server could not reach a private store.
	privateStore := cfg.Store == "" && cfg.Temporal == nil
	if cfg.Store == "" {
		cfg.Store = filepath.Join(private.dir, "store")
	}
	cfg.SpoolDir = cmp.Or(cfg.SpoolDir, filepath.Join(private.dir, "spool"))
	s.openGateways(cfg)
	if s.store, err = s.openStore(ctx, cfg); err != nil {
		return nil, err
	}
	s.addCloser("store", s.store.Close)
	if err := checkLevel(ctx, s.store); err != nil {
		return nil, err
	}
	figures, err := s.startMetrics(ctx, cfg)
	if err != nil {
		return nil, err
	}
	dial := workers.DialOptions{Metrics: figures, Logger: cfg.Logger}
	var serverStarted time.Time
	if cfg.Temporal != nil {
		cfg.Temporal.SearchAttributes = visibility.Types()
		cfg.Temporal.UIHosts = cfg.AllowedHosts
		if s.temporal, err = embedded.Start(ctx, *cfg.Temporal); err != nil {
			return nil, err
		}
		serverStarted = time.Now()
		s.addCloser("Temporal", s.temporal.Stop)
		dial.Address, dial.Namespace = s.temporal.Address(), s.temporal.Namespace()
	}
	if s.conn, err = connect(ctx, cfg, func() (*workers.Connection, error) { return workers.Dial(ctx, dial) }); err != nil {
		return nil, err
	}
	s.addCloser("Temporal client", func() error { s.conn.Close(); return nil })
	s.store.ClaimFor(s.conn.Fleet, cfg.Version)
	s.vault = vault.New(s.store, cmp.Or(cfg.SecretsKey, filepath.Join(private.dir, "secrets-key")), time.Now)
	targets := notifications.NewTargets(s.store, time.Now)
	sender := notifications.NewSender(targets, s.vault, cfg.NotifyAllow, time.Now)
	s.closers = append(s.closers, closer{name: "deliveries of notifications", timeout: deliveriesStopTimeout, stop: func() error { sender.Close(); return nil }})
	if cfg.Control {
		control, err := workers.StartControl(ctx, workers.ControlConfig{Client: s.conn, Store: s.store, Metrics: figures, Logger: cfg.Logger, Version: cfg.Version, Role: cfg.Role, Retention: cfg.Retention, CleanupInterval: cfg.CleanupInterval, Leader: cfg.Leader, Weights: cfg.Weights, FIFO: cfg.FIFO, FairHalfLife: cfg.FairHalfLife, Defaults: cfg.Defaults, PrivateStore: privateStore, GrantNodes: cfg.Auth.Tokens, Notify: cfg.Notify, ExternalURL: func() string { return s.externalURL(cfg) }, Sender: sender, ServerStarted: serverStarted})
		if err != nil {
			return nil, err
		}
		s.addCloser("control worker", func() error { control.Stop(); return nil })
		for _, n := range cfg.Nodes {
			control.ExpectNodes(n.Name)
		}
	}
	if err = s.startNodes(ctx, cfg, figures, private.dir, tempDir); err != nil {
		return nil, err
	}
	if cfg.Gateway != "" {
		serve := gateway.Config{
			Version: cfg.Version,
			Client:  s.conn, Namespace: s.conn.Namespace, Store: s.store, Logger: cfg.Logger,
			Metrics: figures, Observer: cfg.Role == workers.RoleObserver, Hosts: cfg.AllowedHosts, Defaults: cfg.Defaults,
			Vault: s.vault, Targets: targets, Sender: sender, Notify: cfg.Notify, ExternalURL: func() string { return s.externalURL(cfg) },
		}
		if s.temporal != nil {
			serve.TemporalFault = s.temporal.Fault
		}
		serve.TLS = cfg.TLS
		serve.SSHAddress, serve.SSHHost, serve.SSHPort = cfg.SSH.Address, cfg.SSH.Host, cfg.SSH.Port
		serve.PeerURL, serve.PeerTLS = cfg.PeerURL, cfg.PeerTLS
		cfg.Auth.AdminTokenFile = cmp.Or(cfg.Auth.AdminTokenFile, filepath.Join(private.dir, "admin-token"))
		if err := s.startAuth(ctx, cfg, &serve); err != nil {
			return nil, err
		}
		api, err := gateway.New(serve)
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
		s.addCloser("gateway", func() error {
			s.sessions.Store(nil)
			return s.gateway.Close()
		})
		s.sessions.Store(api.Sessions())
		s.gatewayURL.Store(new(s.gateway.URL()))
	}
	if cfg.Temporal == nil {
		// An embedded server constantly needs much of its program.
		timer := time.AfterFunc(releaseMemoryAfter, func() {
			if err := releaseMemory(); err != nil {
				cfg.Logger.Debug("cannot release memory pages of the program", "error", err)
			}
		})
		s.addCloser("memory", func() error { timer.Stop(); return nil })
	}
	return s, nil
}

// externalURL returns the URL at which people open the page, or "" if it is not known.
func (s *Stack) externalURL(cfg Config) string {
	if own := s.gatewayURL.Load(); cfg.ExternalURL == "" && cfg.Temporal != nil && own != nil {
		return *own
	}
	return cfg.ExternalURL
}

// openTempFolder creates the private folder for the temporary directories of attempts. It returns "" if attempts have
// no separate temporary directories.
func (s *Stack) openTempFolder(cfg Config) (dir string, err error) {
	if len(cfg.Nodes) == 0 || cfg.Nodes[0].LocalTempDir == "" {
		return "", nil
	}
	temp, err := newPrivateFolder(cfg.Nodes[0].LocalTempDir)
	if err != nil {
		return "", err
	}
	cfg.ExitFolders.Add(temp.dir)
	s.addCloser("folder for temporary files", temp.close)
	temp.removeAbandoned()
	return filepath.Join(temp.dir, "attempts"), nil
}
