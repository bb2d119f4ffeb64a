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
	// The shell executor starts this program again, as its watchdog and to build sandboxes, and the worker as the guard of its containers.
	shell.ServeIfAsked()
	stack.ServeGuardIfAsked()
	// The executors start it to serve the files of an attempt.
	inside.ServeIfAsked()
	// Pods of Jobs start it with the command of a task.
	podhelper.ServeIfAsked()
	os.Exit(cli.Main(os.Args[1:]...))
}
