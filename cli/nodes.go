package cli

import "github.com/spf13/cobra"

func newNodes(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "List and show the nodes of the fleet, set their terms, and take them out of service",
		Args:  subcommands,
		RunE:  help,
	}
	cmd.AddCommand(newNodesList(sys), newNodesGet(sys), newNodesDrain(sys), newNodesUndrain(sys), newNodesSet(sys), newNodesRemove(sys))
	return cmd
}
