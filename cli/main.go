package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/exit"
)

// Main runs the command named by the arguments, which exclude the program's name, and returns the exit code.
func Main(args ...string) int {
	setDefaultPath()
	sys := newSystem(os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	ctx, release := catchSignals(context.Background(), sys.signals.offer, func() {
		if sys.secondSignal.fire() {
			return
		}
		sys.exitFolders.Remove()
		sys.rawTerminal.Load().Restore()
		os.Exit(exit.CodeInterrupted)
	})
	defer release()
	return execute(ctx, sys, args)
}

// Commands returns the tree of all commands, for what documents them.
func Commands() *cobra.Command {
	return newRoot(newSystem(os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

// execute runs a command and prints on the screen why it failed.
func execute(ctx context.Context, sys *system, args []string) int {
	root := newRoot(sys)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		addCompletions(sys, root)
	}
	root.SetArgs(append([]string{}, args...)) // nil would mean the process's own arguments
	cmd, err := root.ExecuteContextC(ctx)
	code := exit.CodeOf(ctx, err)
	if err == nil {
		return code
	}
	f, ok := errors.AsType[*exit.Error](err)
	switch {
	case ok && f.Err == nil:
	case code == exit.CodeInterrupted:
		fmt.Fprintln(sys.screen, "interrupted")
	case ok && f.Hint != "":
		fmt.Fprintf(sys.screen, "%s\n  %s\n", message(err), f.Hint)
	case ok && f.Code == exit.CodeUsage && !isProblems(err):
		fmt.Fprintf(sys.screen, "%s\n  see `%s --help`\n", message(err), cmd.CommandPath())
	default:
		fmt.Fprintln(sys.screen, message(err))
	}
	return code
}

// message formats an error for people.
func message(err error) string {
	if isProblems(err) {
		return err.Error()
	}
	return "switchyard: " + strings.TrimSpace(err.Error())
}
