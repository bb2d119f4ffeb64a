package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newNodesRemove(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an offline node, or a dead one",
		Long: `Removes a node that is offline. It appears again when its worker registers.

With --dead the node may be silent only, and what ran on it is lost now instead of when its
lease is over: an old task would wait up to --max-lease of the gateway for the node. Say so
only if you know that the machine is off, or that nothing of its tasks runs any more: they
may start elsewhere at once.`,
		Args: arguments(1, 1, "NAME"),
	}
	var dead bool
	cmd.Flags().BoolVar(&dead, "dead", false, "the machine is dead: its tasks are lost now, and move")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Nodes.RemoveNode, &v1.RemoveNodeRequest{Name: args[0], Dead: dead})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteJSON(sys.stdout, map[string]any{"name": args[0], "lostAttempts": res.GetLostAttempts()})
		}
		lost := ""
		if dead {
			lost = "; attempts lost with it: " + strconv.Itoa(int(res.GetLostAttempts()))
		}
		_, err = fmt.Fprintf(sys.screen, "node %s is removed%s\n", args[0], lost)
		return err
	})
	return cmd
}
