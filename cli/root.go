package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/config"
	"switchyard/cli/exit"
)

// helpWidth is the width to which the help wraps the usage of flags.
const helpWidth = 100

func newRoot(sys *system) *cobra.Command {
	root := &cobra.Command{
		Use:   "switchyard",
		Short: "Runs tasks, and graphs of tasks, reliably across machines",
		Long: `Runs tasks, and graphs of tasks, reliably across machines.

Every flag can be set in the environment: --max-parallel is SWITCHYARD_MAX_PARALLEL.
A flag that may be repeated also takes several values separated by commas, except for
--input and --env: their values may contain commas, and go on separate lines in the
environment. Some variables have other names, since every task has the usual one in its
own environment: --output is SWITCHYARD_OUTPUT_FORMAT, --input is SWITCHYARD_RUN_INPUT,
--attempt is SWITCHYARD_LOG_ATTEMPT, --task and --node are SWITCHYARD_ONLY_TASK and
SWITCHYARD_ONLY_NODE, --workflow is SWITCHYARD_RUN_WORKFLOW.

A YAML file (--config) can also hold settings: flag names, with dashes or in camelCase,
and their values, for all commands or, under the name of a command, for that command.
Flags override the environment, which overrides the file, which overrides the defaults.

Exit codes: 0 success, 1 the run did not complete or its state forbids the request, 2 bad
usage or definition or an unknown name, 3 the system could not be reached or failed, 4 not
allowed, 130 interrupted. Commands that run a program in a task exit with its code, or with
255 if the session was left or lost.`,
		Version:       version(),
		Args:          subcommands,
		RunE:          help,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			sys.origins, err = config.Apply(cmd, sys.getenv)
			return err
		},
	}
	root.PersistentFlags().String(config.Flag, "", "YAML file with settings")
	root.PersistentFlags().String(config.ProfileFlag, "", "profile in the settings file, which overrides the file's other settings")
	root.SetIn(sys.stdin)
	root.SetOut(sys.stdout)
	root.SetErr(sys.screen)
	root.SetFlagErrorFunc(unknownFlag)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth)))
	root.AddCommand(
		newRun(sys), newDev(sys), newGateway(sys), newWorker(sys),
		newSubmit(sys), newRuns(sys), newSSH(sys), newTasks(sys), newQueue(sys), newTop(sys), newVps(sys), newEnv(sys), newWorkflows(sys), newApply(sys), newSchedules(sys), newNodes(sys), newAgent(sys), newDLQ(sys), newSecrets(sys), newNotifications(sys), newShares(sys), newQuotas(sys), newKeys(sys),
		newTokens(sys), newDoctor(sys), newAudit(sys), newExport(sys), newImport(sys), newLogin(sys), newLogout(sys), newWhoami(sys),
		newMCP(sys), newValidate(sys), newSchema(sys), newVersion(sys),
	)
	root.CompletionOptions.HiddenDefaultCmd = false
	return root
}

// help shows the help of a command that only groups subcommands.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// subcommands returns an error for a subcommand that does not exist.
func subcommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", strings.TrimPrefix(cmd.CommandPath()+" "+args[0], "switchyard "))
	f := &exit.Error{Code: exit.CodeUsage, Err: err}
	if likely := likelyCommands(cmd, args[0]); len(likely) > 0 {
		f.Hint = "did you mean " + strings.Join(likely, " or ") + "?"
	}
	return f
}

// arguments checks that a command has at least low and at most high arguments. A negative high means no limit. what
// names the arguments in the words of the usage line.
func arguments(low, high int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < low:
			if words := strings.Fields(what); len(words) == low {
				what = strings.Join(words[len(args):], " ")
			}
			return exit.Usagef("%s is missing", what)
		case high >= 0 && len(args) > high:
			return exit.Usagef("unexpected argument %q", args[high])
		case slices.Contains(args, ""):
			return exit.Usagef("%s must not be empty", what)
		}
		return nil
	}
}
