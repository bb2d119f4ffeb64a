package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"switchyard/activities/environments"
	"switchyard/activities/executor"
	"switchyard/activities/executor/container"
	"switchyard/activities/executor/k8sjob"
	"switchyard/activities/executor/k8sjob/cluster"
	"switchyard/activities/executor/relay"
	"switchyard/activities/executor/relay/session"
	"switchyard/activities/executor/shell"
	"switchyard/activities/executor/subagent"
	"switchyard/activities/executor/vps"
	"switchyard/activities/liveness"
	"switchyard/activities/metrics"
	"switchyard/activities/secrets"
	"switchyard/activities/sessions/link"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/node"
)

// startNodes starts the nodes concurrently. They share this machine and one executor of each type.
func (s *Stack) startNodes(ctx context.Context, cfg Config, figures *metrics.Metrics, scratch, temp string) error {
	if len(cfg.Nodes) == 0 {
		return nil
	}
	program := findQEMU()
	kept, err := openNodeStore(ctx, s.store, cfg)
	if err != nil {
		return err
	}
	s.addCloser("spool", kept.Close)
	stored := s.openSecrets(cfg)
	quietKubernetes(cfg.Logger)
	if s.clusters, err = cluster.Open(cfg.Nodes[0].Kube.Clusters, cluster.Options{Logger: cfg.Logger}); err != nil {
		return err
	}
	s.addCloser("clusters", s.clusters.Close)
	virtual := newVirtualMachines(cfg, s.conn.Fleet, kept, program)
	sh, containers, executors, err := s.newExecutors(cfg, kept, scratch, virtual.backend)
	if err != nil {
		return err
	}
	if len(cfg.Nodes[0].Kube.Clusters) == 0 {
		executors = slices.DeleteFunc(executors, func(e executor.Executor) bool { return e.Type() == v1.TypeK8sJob })
	}
	guards := newContainerGuards(cfg.Logger)
	s.addCloser("guards", guards.close)
	found := make(chan node.Facts, 1)
	go func() { found <- node.Detect(ctx, node.SystemSurroundings(cfg.Logger)) }()
	machine := workers.ThisMachine(ctx)
	facts := <-found
	if err := sh.CanSandbox(); err == nil {
		facts.Sandbox = true
	} else {
		cfg.Logger.Debug("shell tasks cannot run in a sandbox here", "reason", err)
	}
	virtual.addTo(&facts)
	facts.Version = cfg.Version
	sessions, err := session.Folder(cfg.Nodes[0].ScratchDir)
	if err != nil {
		return err
	}
	nodes := make([]*workers.Node, len(cfg.Nodes))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, n := range cfg.Nodes {
		group.Go(func() (err error) {
			nodes[i], err = workers.StartNode(groupCtx, workers.NodeConfig{
				Client: s.conn, Store: kept, Gateways: s.gateways, Metrics: figures, Logger: cfg.Logger, Machine: machine,
				Executors: executors, ScratchDir: filepath.Join(scratch, "attempts"), StateDir: n.ScratchDir,
				TempDir: temp, LastingTempDir: n.LocalTempDir,
				Withheld: virtual.reasons(),
				Guard:    func(dir string) error { return guards.start(dir, n.Name, s.conn.Fleet) },
				Name:     n.Name, Labels: n.Labels, Capabilities: facts.Capabilities(n.Capabilities), Terms: n.Terms, GamingTimeout: n.DrainTimeout,
				Sessions:    func(ctx context.Context) []string { return session.List(ctx, sessions) },
				Clusters:    s.clusters.Reachable,
				Support:     newSupport(n, containers),
				Secrets:     &secrets.Resolver{Allow: n.Secrets, Store: stored, Getenv: os.LookupEnv},
				MaxParallel: n.MaxParallel, WorkDir: n.WorkDir, SharedDir: n.SharedDir, Host: n.Host, MaxOutput: n.MaxOutput, ArtifactCache: n.ArtifactCache,
				OfflineAfter: n.OfflineAfter, KeepOnStop: n.KeepOnStop, EndGrace: s.graceEnded.Done(), Gaming: n.Gaming, Containers: n.Containers.Policy, MetricsURL: s.MetricsURL(),
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
				default: // one failure is enough to stop
				}
			case <-stopped:
			}
			return nil
		})
	}
	links := make([]*link.Link, len(nodes))
	for i, n := range nodes {
		if n != nil && err == nil {
			links[i] = s.startLink(cfg, cfg.Nodes[i].Name, n)
		}
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
		return each(func(i int, n *workers.Node) { n.Drain(s.drainSkipped, cfg.Nodes[i].DrainTimeout) })
	}
	s.nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *workers.Node) bool { return n == nil })
	s.closers = append(s.closers, closer{name: "nodes", timeout: nodesStopTimeout, extra: s.ExtraGrace, stop: func() error {
		close(stopped)
		closeLinks(links)
		return errors.Join(each(func(_ int, n *workers.Node) { n.Stop() }), watching.Wait())
	}})
	return err
}

// newExecutors returns one executor for each task type that runs on nodes, and those of shell tasks and containers
// separately. The executors close with the stack.
func (s *Stack) newExecutors(cfg Config, kept *store.Store, scratch string, virtual vps.Backend) (*shell.Executor, *container.Executor, []executor.Executor, error) {
	left := ""
	if parent, err := workers.StateParent(cfg.Nodes[0].ScratchDir); err == nil { // else the nodes keep no state either, and say so
		left = filepath.Join(parent, "left")
	}
	sh, err := shell.New(shell.Options{
		Watchdog: true, Leave: cfg.Nodes[0].KeepOnStop, LeftDir: left, PassEnv: cfg.Nodes[0].PassEnv, IsHidden: cfg.Nodes[0].Secrets.Hides, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	s.addCloser("shell executor", sh.Close)
	allowed := cfg.Nodes[0].Containers
	containers, err := container.New(container.Options{
		Policy: allowed.Policy, Mounts: allowed.Mounts, RegistryAuth: allowed.RegistryAuth, OpenTarball: store.OpenObject,
		Environments: environments.New(kept), ScratchDir: scratch, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("container engine: %w", err)
	}
	s.addCloser("container executor", containers.Close)
	agents := cfg.Nodes[0].Agents
	subagents := subagent.New(subagent.Options{
		Shell: sh, Container: containers, Tools: agents.Tools, FetchHosts: agents.FetchHosts, KeyFiles: agents.KeyFiles, Prices: agents.Prices,
		Gateway: func() string {
			if url := s.gatewayURL.Load(); url != nil {
				return *url
			}
			if s.gateways == nil {
				return ""
			}
			gateway, _ := s.gateways.InUse()
			return gateway
		},
		Logger: cfg.Logger,
	})
	folder, err := session.Folder(cfg.Nodes[0].ScratchDir)
	if err != nil {
		return nil, nil, nil, err
	}
	relays := relay.New(folder)
	kube := cfg.Nodes[0].Kube
	jobs := k8sjob.New(k8sjob.Options{
		Clusters: s.clusters, HelperImage: kube.HelperImage, StartTimeout: kube.StartTimeout, SweepInterval: kube.SweepInterval,
		Fleet: s.conn.Fleet, IsOpen: liveness.Attempts{Client: s.conn, CheckFleet: s.conn.CheckFleet}.IsOpen, Logger: cfg.Logger,
	})
	s.addCloser("Kubernetes executor", jobs.Close)
	return sh, containers, []executor.Executor{sh, containers, vps.New(containers, virtual), jobs, subagents, relays}, nil
}
