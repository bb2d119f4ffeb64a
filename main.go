// Switchyard runs tasks, and graphs of tasks, across machines. See README.md.
package main

import (
	"os"

	"switchyard/activities/executor/shell"
	"switchyard/cli"
)

func main() {
	// The shell executor starts this program again as its watchdog.
	shell.RunWatchdogIfAsked()
	os.Exit(cli.Main(os.Args[1:]...))
}
