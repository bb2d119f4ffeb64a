package cli

import "github.com/spf13/cobra"

func newVps(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vps",
		Short: "Create, list, stop, restart and kill machines to log in to",
		Long: `Create, list, stop, restart and kill machines to log in to. A machine is a container,
or a virtual machine, that lives until it is stopped. One that is created here is a run
of one task, named vps; machines that are tasks of other workflows are listed and
steered, too.`,
		Args: subcommands,
		RunE: help,
	}
	cmd.AddCommand(newVpsCreate(sys), newVpsList(sys), newVpsStatus(sys), newVpsStop(sys), newVpsRestart(sys), newVpsKill(sys))
	return cmd
}
