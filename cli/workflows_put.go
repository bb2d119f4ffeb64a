package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newWorkflowsPut(sys *system) *cobra.Command {
	replace := false
	cmd := &cobra.Command{
		Use:   "put FILE",
		Short: "Store a definition under its name",
		Args:  arguments(1, 1, "FILE"),
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "take the place of an older definition of the name")
	gateway, output := clientFlag(cmd), outputFlag(cmd, formatText, formatJSON)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, args []string) error {
		d, err := readDocument(sys, args[0])
		if err != nil {
			return err
		}
		res, err := call(ctx, a, a.workflows.PutWorkflow, &v1.PutWorkflowRequest{
			Source: &v1.PutWorkflowRequest_Document{Document: string(d.text)}, File: d.file, Replace: replace,
		})
		if err != nil {
			return withRemedy(err, func() string { return "--replace puts this definition in its place" })
		}
		if output.value == formatJSON {
			return writeMessage(sys.stdout, res)
		}
		what := "stored"
		if res.GetReplaced() {
			what = "replaced"
		}
		_, err = fmt.Fprintf(sys.screen, "workflow %s is %s; `switchyard submit --workflow %s` runs it\n", res.GetName(), what, res.GetName())
		return err
	})
	return cmd
}
