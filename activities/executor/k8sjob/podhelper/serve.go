package podhelper

import (
	"fmt"
	"os"
)

// Command is the first argument that turns the program into a helper.
const Command = "pod-helper"

// Exit codes in addition to those of the program.
const (
	// ExitUsage means that the arguments are wrong.
	ExitUsage = 2
	// ExitHelper means that the helper itself failed before it started the program.
	ExitHelper = 125
	// ExitCannotRun means that the program cannot be executed, as in a shell.
	ExitCannotRun = 126
	// ExitNotFound means that the program does not exist, as in a shell.
	ExitNotFound = 127
)

// ServeIfAsked runs the helper and exits if the program was started as `switchyard pod-helper ...`. Main calls it
// before it parses commands, so that the helper starts fast.
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
