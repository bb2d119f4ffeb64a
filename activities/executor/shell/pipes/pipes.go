package pipes

import "os"

// Pipes pass on what a program prints.
type Pipes interface {
	// Files are what the program writes to. Nothing is passed on before Begin.
	Files() (out, errs *os.File)
	// Forked is called when the program has started, or could not be.
	Forked()
	// Begin passes on what the program prints. It is left out when none has started.
	Begin()
	// Finish is called when nothing of the program is left. It passes on the rest of
	// what it has printed, and nothing afterwards. The error is that of a writer.
	Finish() error
}
