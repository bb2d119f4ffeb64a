package cli

import "github.com/spf13/cobra"

func newTokens(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tokens",
		Short: "Create, list and revoke the tokens with which users and nodes log in",
		Args:  subcommands,
		RunE:  help,
	}
	cmd.AddCommand(newTokensCreate(sys), newTokensList(sys), newTokensRevoke(sys))
	return cmd
}
