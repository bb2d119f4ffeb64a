// Package executortest is the conformance suite that all executors pass. The
// test of an executor describes in a Harness how to create it and how to write
// the suite's programs as specs of its task type, and calls Run. Executors whose
// attempts can be entered, and code that forwards an executor.Inside, also call
// RunInside.
//
// The package may import activities/executor, proto, goleak, github.com/pkg/sftp
// and the standard library.
package executortest
