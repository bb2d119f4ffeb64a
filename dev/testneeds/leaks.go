package testneeds

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// goroutineWait is how long goroutines may take to end after the last test. A busy machine may delay them by seconds.
const goroutineWait = time.Minute

// NoLeaks runs the tests of a package and ends the process, with a failure if a test has failed or if goroutines of the
// tests do not end. The tests have a state folder of their own. TestMain calls NoLeaks.
func NoLeaks(m goleak.TestingM, options ...goleak.Option) {
	removeState, err := OwnState()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	removeState()
	if code == 0 {
		if err := FindLeaks(options...); err != nil {
			fmt.Fprintln(os.Stderr, "the tests have succeeded, but goroutines remain:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// OwnState makes a temporary folder the state folder of this process and of those that it starts. remove removes it.
func OwnState() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "sy-") // short, for the paths of sockets
	if err != nil {
		return nil, err
	}
	return func() { _ = os.RemoveAll(dir) }, os.Setenv("XDG_STATE_HOME", dir)
}

// FindLeaks waits for the goroutines of tests to end. It returns an error with those that do not.
func FindLeaks(options ...goleak.Option) error {
	for deadline := time.Now().Add(goroutineWait); ; {
		err := goleak.Find(options...) // which waits for some tenths of a second
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
