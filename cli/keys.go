package cli

import "github.com/spf13/cobra"

func newKeys(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Add, list and remove your SSH keys for logging in to tasks",
		Long: `Add, list and remove the public keys that can log in by SSH, through a gateway with
--ssh-address, to the tasks of all your runs: ssh -p 7222 TASK.RUN@GATEWAY.`,
		Args: subcommands,
		RunE: help,
	}
	cmd.AddCommand(newKeysAdd(sys), newKeysList(sys), newKeysRemove(sys))
	return cmd
}
