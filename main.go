// Switchyard runs tasks, and graphs of tasks, across machines. See README.md.
package main

import (
	"os"

	"switchyard/activities/executor/inside"
	"switchyard/activities/executor/k8sjob/podhelper"
	"switchyard/activities/executor/shell"
	"switchyard/cli"
	"switchyard/cli/stack"
)

func main() {
	// The shell executor starts this program as its watchdog and to build sandboxes; the worker starts it to guard its
	// containers.
	shell.ServeIfAsked()
	stack.ServeGuardIfAsked()
	// Executors start this program to serve the files of an attempt.
	inside.ServeIfAsked()
	// Pods of Jobs start this program with the command of a task.
	podhelper.ServeIfAsked()
	os.Exit(cli.Main(os.Args[1:]...))
}
