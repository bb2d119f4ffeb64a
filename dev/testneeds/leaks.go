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
// tests do not end. TestMain calls NoLeaks.
func NoLeaks(m goleak.TestingM, options ...goleak.Option) {
	code := m.Run()
	if code == 0 {
		if err := FindLeaks(options...); err != nil {
			fmt.Fprintln(os.Stderr, "the tests have succeeded, but goroutines remain:", err)
			code = 1
		}
	}
	os.Exit(code)
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
