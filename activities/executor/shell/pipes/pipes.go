package pipes

import "os"

// Pipes forwards the output of a program.
type Pipes interface {
	// Files returns the files that the program writes to. Nothing is forwarded
	// before Begin.
	Files() (out, errs *os.File)
	// Forked is called once the program has started or failed to start.
	Forked()
	// Begin starts to forward the output. It is not called if no program has
	// started.
	Begin()
	// Finish is called when no process of the program is left. It forwards the
	// remaining output and nothing afterwards. Its error is that of a writer.
	Finish() error
}
