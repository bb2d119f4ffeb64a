package cli

import "github.com/spf13/cobra"

func newVps(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vps",
		Short: "Create, list, stop, restart and kill machines that you can log in to",
		Long: `Create, list, stop, restart and kill machines that you can log in to. A machine is a
container or a virtual machine that runs until it is stopped. "vps create" starts it as a
run of one task, named vps; the other commands also work on machines that are tasks of
other workflows.`,
		Args: subcommands,
		RunE: help,
	}
	cmd.AddCommand(newVpsCreate(sys), newVpsList(sys), newVpsStatus(sys), newVpsStop(sys), newVpsRestart(sys), newVpsKill(sys))
	return cmd
}
