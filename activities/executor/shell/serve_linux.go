package shell

import (
	"os"

	"switchyard/activities/executor/shell/sandboxinit"
	"switchyard/activities/executor/shell/watchdogproc"
)

// ServeIfAsked runs the watchdog, or builds a sandbox and becomes what runs in it, when
// this process was started for that; it returns at once otherwise. It is the first call
// of main, and of TestMain where tests use Options.Watchdog or sandboxes: the process
// is the same binary, and should do nothing else.
func ServeIfAsked() {
	switch os.Args[0] {
	case watchdogproc.Name:
		watchdogproc.Run()
	case sandboxinit.Name:
		sandboxinit.Run()
	}
}
