package cli

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	v1 "switchyard/proto/switchyard/v1"
)

func newWorkflowsGet(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Print a stored definition, in JSON, as every command that takes a FILE reads it",
		Args:  arguments(1, 1, "NAME"),
	}
	gateway := clientFlag(cmd)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, args []string) error {
		res, err := call(ctx, a, a.workflows.GetWorkflow, &v1.GetWorkflowRequest{Name: args[0]})
		if err != nil {
			return err
		}
		text, err := protojson.Marshal(res.GetDefinition())
		if err != nil {
			return err
		}
		_, err = sys.stdout.Write(append(indented(text, ""), '\n'))
		return err
	})
	return cmd
}
