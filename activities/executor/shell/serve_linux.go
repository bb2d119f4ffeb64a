package shell

import (
	"os"

	"switchyard/activities/executor/shell/sandboxinit"
	"switchyard/activities/executor/shell/watchdogproc"
)

// ServeIfAsked runs this process as the watchdog, or makes it build a sandbox and
// execute the program in it, if it was started for that. Otherwise it returns at once.
// It must be the first call of main, and of TestMain where tests use Options.Watchdog
// or sandboxes: the process is the same binary and should do nothing else.
func ServeIfAsked() {
	switch os.Args[0] {
	case watchdogproc.Name:
		watchdogproc.Run()
	case sandboxinit.Name:
		sandboxinit.Run()
	}
}
