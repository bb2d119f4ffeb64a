package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"switchyard/workers/node"
)

func newWorker(sys *system) *cobra.Command {
	nodes := nodeFlags{count: 1}
	var store string
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Make this machine a node, on a Temporal that is there",
		Long: `Makes this machine a node that runs tasks, until Ctrl-C. Where Temporal is comes from
Temporal's own settings: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, ..., or its profile file.`,
		Args: arguments(0, 0, ""),
	}
	nodes.addOne(cmd.Flags())
	cmd.Flags().Lookup("name").Usage += " (default the name of the machine)"
	cmd.Flags().StringVar(&store, "store", "", storeUsage)
	level := logFlag(cmd, "info")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if nodes.name == "" {
			hostname, err := os.Hostname()
			if err != nil {
				return usageError("this machine has no name; give the node one with --name: %w", err)
			}
			nodes.name = node.Name(hostname)
		}
		cfg := stackConfig{Logger: logger(sys, level)}
		if cfg.Nodes, err = nodes.configs(1); err != nil {
			return err
		}
		if cfg.Store, err = storeOr(store, sys.getenv); err != nil {
			return err
		}
		return serve(cmd.Context(), sys, cfg, func(*stack) error {
			_, err := fmt.Fprintf(sys.stdout, "Node       %s\nStore      %s\n", nodes.name, cfg.Store)
			return err
		})
	}
	return cmd
}
