// Package executortest is the conformance suite that all executors pass. An
// executor's own test says by a Harness how to make one and how to write the
// suite's programs as specs of its type, and calls Run.
//
// The package may import activities/executor, proto, goleak and the
// standard library.
package executortest
