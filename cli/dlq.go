package cli

import (
	"github.com/spf13/cobra"

	"switchyard/cli/exit"
)

func newDLQ(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "List, retry and purge dead letters",
		Long: `List, retry and purge dead letters. A dead letter is a task that has used up its
retries.

RUN is the id of a run, a prefix that only one run has, or "last" for the run that you
submitted last to this gateway.`,
		Args: subcommands,
		RunE: help,
	}
	cmd.AddCommand(newDLQList(sys), newDLQRetry(sys), newDLQPurge(sys))
	return cmd
}

// oneOrAll adds --all to a command that acts on one task of a run or on all of them. It returns a function that reads
// the run and the task from the flags and arguments.
func oneOrAll(cmd *cobra.Command) func(args []string) (run, task string, err error) {
	every := cmd.Flags().Bool("all", false, "every dead letter of the run")
	cmd.Args = arguments(1, 2, "RUN")
	return func(args []string) (run, task string, err error) {
		switch {
		case len(args) == 2 && *every:
			return "", "", exit.Usagef("name a task or --all, not both")
		case len(args) == 2:
			return args[0], args[1], nil
		case *every:
			return args[0], "", nil
		}
		return "", "", exit.Usagef("TASK is missing; use --all for every dead letter of the run")
	}
}
