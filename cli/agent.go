package cli

import "github.com/spf13/cobra"

func newAgent(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Keep sessions of agents alive that tasks send messages to, and list them",
		Args:  subcommands,
		RunE:  help,
	}
	cmd.AddCommand(newAgentAttach(sys), newAgentSessions(sys))
	return cmd
}
