package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Main runs the command that the arguments, without the program's name, ask for
// and returns the exit code.
func Main(args ...string) int {
	sys := newSystem(os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	ctx, release := catchSignals(context.Background(), func() {
		if sys.hurry.hurry() {
			return
		}
		sys.leftovers.remove()
		os.Exit(exitInterrupted)
	})
	defer release()
	return execute(ctx, sys, args)
}

// execute runs a command and tells on the screen why it failed.
func execute(ctx context.Context, sys *system, args []string) int {
	root := newRoot(sys)
	root.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	cmd, err := root.ExecuteContextC(ctx)
	code := codeOf(ctx, err)
	if err == nil {
		return code
	}
	f, ok := errors.AsType[*failure](err)
	switch {
	case ok && f.err == nil:
	case code == exitInterrupted:
		fmt.Fprintln(sys.screen, "interrupted")
	case ok && f.hint != "":
		fmt.Fprintf(sys.screen, "%s\n  %s\n", message(err), f.hint)
	case ok && f.code == exitUsage && !isProblems(err):
		fmt.Fprintf(sys.screen, "%s\n  see `%s --help`\n", message(err), cmd.CommandPath())
	default:
		fmt.Fprintln(sys.screen, message(err))
	}
	return code
}

// message is an error as people read it.
func message(err error) string {
	if isProblems(err) {
		return err.Error()
	}
	return "switchyard: " + strings.TrimSpace(err.Error())
}

func newRoot(sys *system) *cobra.Command {
	root := &cobra.Command{
		Use:   "switchyard",
		Short: "Runs tasks, and graphs of tasks, across machines, and loses none",
		Long: `Runs tasks, and graphs of tasks, across machines, and loses none.

Every flag can be set in the environment: --max-parallel is SWITCHYARD_MAX_PARALLEL.
A flag that may be repeated takes several values with commas between them, too; only
those of --input may have commas in them, and stand on lines of their own in the
environment. Other names have those that every task finds in its environment for
itself: --output is SWITCHYARD_OUTPUT_FORMAT, --input is SWITCHYARD_RUN_INPUT, --attempt is SWITCHYARD_LOG_ATTEMPT, --task and --node are
SWITCHYARD_ONLY_TASK and SWITCHYARD_ONLY_NODE, --workflow is SWITCHYARD_RUN_WORKFLOW.

A file in YAML (--config) holds settings too: names of flags, with dashes or in
camelCase, and their values, for all commands or, below the name of a command, for
that one. Flags go over the environment, that over the file, and that over defaults.

Exit codes: 0 done, 1 the run did not complete, 2 bad usage or definition, 3 the
system could not be reached or broke, 4 not allowed, 130 interrupted.`,
		Version:           version(),
		Args:              subcommands,
		RunE:              help,
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return settle(cmd, sys) },
	}
	root.PersistentFlags().String(configFlag, "", "file with settings, in YAML")
	root.SetIn(sys.stdin)
	root.SetOut(sys.stdout)
	root.SetErr(sys.screen)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError("%w", err) })
	root.AddCommand(
		newRun(sys), newDev(sys), newGateway(sys), newWorker(sys),
		newSubmit(sys), newRuns(sys), newWorkflows(sys), newNodes(sys), newDLQ(sys),
		newValidate(sys), newSchema(sys), newVersion(sys),
	)
	addCompletions(sys, root)
	root.CompletionOptions.HiddenDefaultCmd = false
	return root
}

// help is what a command that only holds others does.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// subcommands refuses a subcommand that does not exist.
func subcommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("there is no command %q", strings.TrimPrefix(cmd.CommandPath()+" "+args[0], "switchyard "))
	f := &failure{code: exitUsage, err: err}
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	near := cmd.SuggestionsFor(args[0])
	for _, group := range cmd.Commands() {
		if sub, _, err := group.Find(args[:1]); err == nil && sub != group && len(near) == 0 {
			near = append(near, group.Name()+" "+sub.Name())
		}
	}
	if len(near) > 0 {
		f.hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return f
}

// arguments checks that there are at least low and at most high arguments; high
// below 0: any number. what says what they are, in the words of the usage line.
func arguments(low, high int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < low:
			return usageError("%s is missing", what)
		case high >= 0 && len(args) > high:
			return usageError("%q is one argument too many", args[high])
		case slices.Contains(args, ""):
			return usageError("%s must not be empty", what)
		}
		return nil
	}
}
