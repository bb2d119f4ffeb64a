package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/stack"
	"switchyard/workers/node"
)

// workerDrainTimeout is the default time that a stopped worker gives its tasks to finish.
const workerDrainTimeout = 30 * time.Second

const (
	// defaultMetricsAddress is where a worker serves its metrics.
	defaultMetricsAddress = "127.0.0.1:7281"
	// noMetrics is the address that turns the metrics of a worker off.
	noMetrics = "none"
)

// Values of --on-stop.
const (
	stopKeep  = "keep"
	stopDrain = "drain"
)

func newWorker(sys *system) *cobra.Command {
	nodes := nodeFlags{count: 1, drainTimeout: workerDrainTimeout}
	var store, spool, metricsAddress string
	onStop := &output.Choice{Value: stopDrain, Allowed: []string{stopKeep, stopDrain}}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Make this machine a node on an existing Temporal server",
		Long: `Makes this machine a node that runs tasks until Ctrl-C or SIGTERM. The Temporal server is
configured with Temporal's own settings: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, ..., or its
profile file. Output and results go to the gateway, unless --store names the gateway's own
store. If the gateway requires tokens, give the worker a token of the role node, which is
bound to the name of the node, in SWITCHYARD_TOKEN or a file (--token-file); a new token in
that file takes effect at once.

A worker that is stopped drains its node: waiting tasks move to other nodes at once, and
running tasks may finish until --drain-timeout and then move too. A second signal ends the
drain, and a third one quits at once.

With --on-stop keep, containers and shell tasks run on while the worker is restarted. The next
worker of the node continues them if it starts before their leases are over, in general 12 s
after the stop; otherwise they are ended, and their tasks start elsewhere. Tasks of other types
drain, and so do shell tasks on a Linux before 6.15.`,
		Args: arguments(0, 0, ""),
	}
	nodes.addOne(cmd.Flags())
	nodes.addSecrets(cmd.Flags())
	cmd.Flags().Lookup("name").Usage += " (default the name of the machine)"
	cmd.Flags().StringVar(&store, "store", "", workerStoreUsage)
	cmd.Flags().Var(onStop, "on-stop", "what a stopped worker does with running tasks: leave those that can run on to the next worker of the node, or drain all of them")
	var quotas quotaFlags
	quotas.add(cmd.Flags())
	for _, quota := range []string{"log-quota-gb", "artifact-quota-gb"} {
		cmd.Flags().Lookup(quota).Usage += " (the gateway's own where it is the store)"
	}
	cmd.Flags().StringVar(&spool, "spool-dir", "", spoolUsage)
	cmd.Flags().StringVar(&metricsAddress, "metrics-address", defaultMetricsAddress, "host:port to serve Prometheus metrics on, under /metrics, or none")
	gateway := clientFlag(cmd)
	level := logFlag(cmd, "info")
	var cfg stack.Config
	// The doctor calls PreRunE, too.
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		if nodes.name == "" {
			hostname, err := os.Hostname()
			if err != nil {
				return exit.Usagef("this machine has no name; give the node one with --name: %w", err)
			}
			nodes.name = node.Name(hostname)
		}
		store = workerStore(store, *gateway) // the form that is logged
		if spool, err = spoolOr(spool, store, nodes.name); err != nil {
			return err
		}
		if err := checkNewFolder("spool-dir", spool); err != nil {
			return err
		}
		cfg = stack.Config{Store: store, SpoolDir: spool, MetricsAddress: metricsAddress}
		if metricsAddress == noMetrics {
			cfg.MetricsAddress = ""
		}
		if err := quotas.into(&cfg); err != nil {
			return err
		}
		if cfg.Nodes, err = nodes.configs(1); err != nil {
			return err
		}
		for i := range cfg.Nodes {
			cfg.Nodes[i].KeepOnStop = onStop.Value == stopKeep
		}
		if cfg.NodeGateways, err = sys.parseGateways(gatewaysOf(store, *gateway)); err != nil {
			return err
		}
		cfg.NodeTLS, err = clientTLS(cmd)
		return err
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		cfg.Logger = logger(sys, level)
		cfg.MetricsOptional = sys.origins["metrics-address"] == ""
		if cfg.Token, err = sys.nodeToken(cmd, cfg.NodeGateways); err != nil {
			return err
		}
		sys.origins.Log(cfg.Logger, cmd, sys.getenv, true)
		return sys.serveNode(cmd, cfg, nodes.name, func(s *stack.Stack) error {
			_, err := fmt.Fprintf(sys.stdout, "Node       %s\nStore      %s\n", nodes.name, cfg.Store)
			if url := s.MetricsURL(); err == nil && url != "" {
				_, err = fmt.Fprintf(sys.stdout, "Metrics    %s\n", url)
			}
			return err
		})
	}
	return cmd
}
