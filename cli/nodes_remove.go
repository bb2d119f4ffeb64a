package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newNodesRemove(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Forget a node that is offline",
		Args:  arguments(1, 1, "NAME"),
	}
	gateway, output := clientFlag(cmd), outputFlag(cmd, formatText, formatJSON)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, args []string) error {
		if _, err := call(ctx, a, a.nodes.RemoveNode, &v1.RemoveNodeRequest{Name: args[0]}); err != nil {
			return err
		}
		if output.value == formatJSON {
			return writeJSON(sys.stdout, map[string]string{"name": args[0]})
		}
		_, err := fmt.Fprintf(sys.screen, "node %s is forgotten\n", args[0])
		return err
	})
	return cmd
}
