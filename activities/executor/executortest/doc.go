// Package executortest is the conformance suite that all executors pass. An
// executor's own test says by a Harness how to make one and how to write the
// suite's programs as specs of its type, and calls Run. Executors whose attempts
// can be entered, and what passes executor.Inside on, call RunInside, too.
//
// The package may import activities/executor, proto, goleak, github.com/pkg/sftp
// and the standard library.
package executortest
