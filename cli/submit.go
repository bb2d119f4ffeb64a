package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// submitFlags holds the flags of `submit`.
type submitFlags struct {
	input    inputFlags
	files    sourceFlags
	workflow string
	key      string
	dryRun   bool
	watch    bool
	settings runOptions
	format   *output.Choice
}

func newSubmit(sys *system) *cobra.Command {
	f := &submitFlags{}
	cmd := &cobra.Command{
		Use:   "submit FILE | --workflow NAME",
		Short: "Start a run on a gateway and print its id",
		Long: `Starts a run on a gateway and prints its id. The definition is FILE, which may be - for
standard input, or one that is stored under a name.

With --idempotency-key a request may be repeated: the same key with the same definition
and input returns the run that the first request started. With --dry-run no run is
started; the command prints the plan instead: the order and level of the tasks, their
conditions, and where each task could run now.`,
		Args: arguments(0, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, sys, args) },
	}
	flags := cmd.Flags()
	f.input.add(flags, "run")
	f.files.add(flags)
	flags.StringVar(&f.workflow, "workflow", "", "run the definition stored under this name")
	flags.StringVar(&f.key, "idempotency-key", "", "start only one run for this key, even if the request is repeated")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only print the plan")
	flags.BoolVar(&f.watch, "watch", false, "follow the run to its end; the exit code tells whether it completed, and -o json prints the run")
	f.settings.add(flags, "default 0")
	clientFlag(cmd)
	f.format = output.FormatFlag(cmd, output.Text, output.JSON)
	return cmd
}

func (f *submitFlags) run(cmd *cobra.Command, sys *system, args []string) error {
	ctx := cmd.Context()
	switch {
	case len(args) == 0 && f.workflow == "":
		return exit.Usagef("FILE is missing; --workflow NAME runs a stored definition")
	case len(args) == 1 && f.workflow != "":
		return exit.Usagef("name a FILE or --workflow, not both")
	case f.dryRun && f.watch:
		return exit.Usagef("--dry-run and --watch are mutually exclusive")
	case f.dryRun && f.key != "":
		return exit.Usagef("--dry-run and --idempotency-key are mutually exclusive")
	}
	options, err := f.settings.options(0)
	if err != nil {
		return err
	}
	given, err := f.input.read(sys)
	if err != nil {
		return err
	}
	a, err := sys.openClient(cmd)
	if err != nil {
		return err
	}
	defer a.Close()
	req := &v1.SubmitRunRequest{Options: options, IdempotencyKey: f.key, Batch: f.settings.batch}
	d, err := f.source(ctx, sys, a, args, given, req)
	if err != nil {
		return err
	}
	if f.dryRun {
		plan, err := client.Call(ctx, a, a.Runs.PlanRun, &v1.PlanRunRequest{Submit: req})
		if err != nil {
			return err
		}
		if f.format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, plan)
		}
		printWarnings(sys, plan.GetName(), plan.GetWarnings())
		return output.WritePlan(sys.stdout, plan)
	}
	if err := f.files.send(ctx, sys, a, d, req); err != nil {
		return err
	}
	res, err := startRun(ctx, sys, a, a.Runs.SubmitRun, req)
	if err != nil {
		return withKeyRemedy(err, f.key, "use a different key for another definition or input")
	}
	printWarnings(sys, res.GetName(), res.GetWarnings())
	document := map[string]any{"id": res.GetId(), "name": res.GetName(), "warnings": problemItems(source.Problems(res.GetWarnings()))}
	if f.key != "" {
		document["existed"] = res.GetExisted()
	}
	if res.GetExisted() {
		fmt.Fprintf(sys.screen, "run %s was started by an earlier request with this key\n", res.GetId())
	}
	return startedRun(ctx, sys, a, res, f.format, f.watch, document)
}

// source sets the definition and the input of a request. It returns the document, or nil if the definition is stored.
func (f *submitFlags) source(ctx context.Context, sys *system, a *client.Client, args []string, given *givenInput, req *v1.SubmitRunRequest) (d *document, err error) {
	if f.workflow == "" {
		if err := f.input.oneStdin(args[0]); err != nil {
			return nil, err
		}
		if d, err = readDocument(sys, args[0]); err != nil {
			return nil, err
		}
		d.into(req)
		req.Input, err = given.parse(sys, d.def)
		return d, err
	}
	req.Source = &v1.SubmitRunRequest_Workflow{Workflow: f.workflow}
	if given == nil {
		return nil, nil
	}
	// The stored definition gives the types of the input.
	stored, err := client.Call(ctx, a, a.Workflows.GetWorkflow, &v1.GetWorkflowRequest{Name: f.workflow})
	if err != nil {
		return nil, err
	}
	req.Input, err = given.parse(sys, stored.GetDefinition())
	return nil, err
}
