package cli

import "github.com/spf13/cobra"

func newWorkflows(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workflows",
		Short: "Store definitions under their names, show, list and delete them",
		Long: `Store definitions under their names, show, list and delete them. A stored definition
is started with "submit --workflow NAME", and by tasks of type run.`,
		Args: subcommands,
		RunE: help,
	}
	cmd.AddCommand(newWorkflowsPut(sys), newWorkflowsGet(sys), newWorkflowsList(sys), newWorkflowsDelete(sys))
	return cmd
}
