package cli

import "github.com/spf13/cobra"

func newTasks(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "List the tasks of all runs",
		Args:  subcommands,
		RunE:  help,
	}
	cmd.AddCommand(newTasksList(sys))
	return cmd
}
