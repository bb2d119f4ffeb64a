package cli

import "github.com/spf13/cobra"

func newRunsArtifacts(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "artifacts",
		Aliases: []string{"artifact"},
		Short:   "List and download the files that tasks have left",
		Args:    subcommands,
		RunE:    help,
	}
	cmd.AddCommand(newRunsArtifactsList(sys), newRunsArtifactsGet(sys))
	return cmd
}
