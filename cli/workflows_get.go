package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

func newWorkflowsGet(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Print a stored definition in the form that commands accept as FILE",
		Args:  arguments(1, 1, "NAME"),
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.JSON, output.YAML)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Workflows.GetWorkflow, &v1.GetWorkflowRequest{Name: args[0]})
		if err != nil {
			return err
		}
		if format.Value == output.YAML {
			text, err := definition.Print(res.GetDefinition())
			if err != nil {
				return err
			}
			_, err = sys.stdout.Write(text)
			return err
		}
		return writeDefinition(sys.stdout, res.GetDefinition())
	})
	return cmd
}

// writeDefinition writes a definition as JSON that commands with a FILE argument can read.
func writeDefinition(w io.Writer, d *v1.Definition) error {
	text, err := protojson.Marshal(d)
	if err != nil {
		return err
	}
	_, err = w.Write(append(output.Indented(text, ""), '\n'))
	return err
}
