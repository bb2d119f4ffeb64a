package cli

import "github.com/spf13/cobra"

func newAgent(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Keep agent sessions running for tasks to message, and list them",
		Args:  subcommands,
		RunE:  help,
	}
	cmd.AddCommand(newAgentAttach(sys), newAgentSessions(sys))
	return cmd
}
