package cli

import "github.com/spf13/cobra"

func newRuns(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List, show, explain, watch and cancel runs, and read their logs and events",
		Long: `List, show, explain, watch and cancel runs, and read their logs and events.

RUN is the id of a run, a prefix that only one run has, or "last".`,
		Args: subcommands,
		RunE: help,
	}
	cmd.AddCommand(newRunsList(sys), newRunsGet(sys), newRunsWatch(sys), newRunsCancel(sys), newRunsLogs(sys), newRunsEvents(sys), newRunsExplain(sys))
	return cmd
}
