package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newNodesUndrain(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undrain NAME",
		Short: "Put a draining node back into service",
		Args:  arguments(1, 1, "NAME"),
	}
	gateway, output := clientFlag(cmd), outputFlag(cmd, formatText, formatJSON)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, args []string) error {
		res, err := call(ctx, a, a.nodes.UndrainNode, &v1.UndrainNodeRequest{Name: args[0]})
		if err != nil {
			return err
		}
		if output.value == formatJSON {
			return writeMessage(sys.stdout, res.GetNode())
		}
		_, err = fmt.Fprintf(sys.screen, "node %s is %s\n", res.GetNode().GetName(), res.GetNode().GetState())
		return err
	})
	return cmd
}
