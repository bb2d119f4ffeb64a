package cli

import "github.com/spf13/cobra"

func newSecrets(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Set, list and delete the secrets that tasks name by store:NAME",
		Long: `Set, list and delete the secrets that tasks name by store:NAME in their secretEnv. The
gateway stores them encrypted and releases a value only to a node that runs a task that
names it. No command shows a value.`,
		Args: subcommands,
		RunE: help,
	}
	cmd.AddCommand(newSecretsSet(sys), newSecretsList(sys), newSecretsDelete(sys))
	return cmd
}
