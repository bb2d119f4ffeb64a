package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/cli/client"
	"switchyard/cli/follow"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsRerun(sys *system) *cobra.Command {
	var (
		input inputFlags
		watch bool
	)
	cmd := &cobra.Command{
		Use:   "rerun RUN",
		Short: "Start a new run with the definition and input of an earlier run, and print its id",
		Long: `Starts a new run with the same definition as an earlier run, and prints the new id. The
input is also that of the earlier run, except for the values given with --input.`,
		Args: arguments(1, 1, "RUN"),
	}
	input.add(cmd.Flags(), "run")
	cmd.Flags().BoolVar(&watch, "watch", false, "follow the run to its end; the exit code tells whether it completed, and -o json prints the run")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		given, err := input.read(sys)
		if err != nil {
			return err
		}
		run, err := sys.resolveRun(ctx, a, args[0])
		if err != nil {
			return err
		}
		req := &v1.RerunRunRequest{Id: run}
		if given != nil {
			// The inputs of the other run set the types of the new values.
			page, err := client.Call(ctx, a, a.Runs.GetRun, &v1.GetRunRequest{Id: run, PageSize: 1})
			if err != nil {
				return err
			}
			req.Id = page.GetRun().GetId()
			if req.Input, err = given.parse(sys, inputsLike(page.GetRun().GetInput())); err != nil {
				return err
			}
		}
		res, err := startRun(ctx, sys, a, a.Runs.RerunRun, req)
		if err != nil {
			return err
		}
		return startedRun(ctx, sys, a, &v1.SubmitRunResponse{Id: res.GetId()}, format, watch, map[string]any{"id": res.GetId(), "name": res.GetName()})
	})
	return cmd
}

// inputsLike returns a definition that declares the strings among these values as inputs, so that a string stays one
// even if it looks like a number.
func inputsLike(values *structpb.Struct) *v1.Definition {
	d := &v1.Definition{Inputs: map[string]*v1.InputDefinition{}}
	for name, value := range values.GetFields() {
		if _, text := value.GetKind().(*structpb.Value_StringValue); text {
			d.Inputs[name] = &v1.InputDefinition{Type: "string"}
		}
	}
	return d
}

// startedRun prints that a run has started, and follows it if watch is set. As JSON it prints one document, which is
// the run at its end if it follows the run.
func startedRun(ctx context.Context, sys *system, a *client.Client, res *v1.SubmitRunResponse, format *output.Choice, watch bool, document map[string]any) error {
	watcher := &follow.Watcher{Terminal: sys.terminal(), Client: a, Run: res.GetId(), Format: format.Value}
	if ctx.Err() != nil && !res.GetExisted() {
		watcher.OwnsRun = true // until now only this command knew the run
		return watcher.Watch(ctx)
	}
	switch {
	case watch && format.Value == output.JSON:
		return watcher.Watch(ctx) // prints the run at its end as its document
	case format.Value == output.JSON:
		return output.WriteJSON(sys.stdout, document)
	}
	if _, err := fmt.Fprintln(sys.stdout, res.GetId()); err != nil || !watch {
		return err
	}
	return watcher.Watch(ctx)
}
