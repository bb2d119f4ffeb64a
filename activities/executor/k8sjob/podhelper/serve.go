package podhelper

import (
	"fmt"
	"os"
)

// Command is the first argument of the program by which it becomes a helper.
const Command = "pod-helper"

// Exit codes besides those of the program.
const (
	// ExitUsage says that the arguments are wrong.
	ExitUsage = 2
	// ExitHelper says that the helper itself has failed, before the program was started.
	ExitHelper = 125
	// ExitCannotRun says that the program cannot be executed, as a shell does.
	ExitCannotRun = 126
	// ExitNotFound says that the program does not exist, as a shell does.
	ExitNotFound = 127
)

// ServeIfAsked runs the helper and does not return if the program was started as `switchyard pod-helper ...`. Main calls it
// before it looks at commands, so that the helper is fast.
func ServeIfAsked() {
	if len(os.Args) > 1 && os.Args[1] == Command {
		os.Exit(serve(os.Args[2:]))
	}
}

// serve runs `install DIR` or `run -- COMMAND ARGS...` and returns the exit code.
func serve(args []string) int {
	switch {
	case len(args) == 2 && args[0] == "install" && args[1] != "":
		if err := Install(args[1]); err != nil {
			return complain(1, err)
		}
		return 0
	case len(args) > 2 && args[0] == "run" && args[1] == "--":
		return Run(args[2:])
	}
	return complain(ExitUsage, fmt.Errorf("usage: switchyard %s install DIR, or switchyard %s run -- COMMAND ARGS", Command, Command))
}

// complain prints an error and returns an exit code.
func complain(code int, err error) int {
	fmt.Fprintf(os.Stderr, "switchyard %s: %v\n", Command, err)
	return code
}
