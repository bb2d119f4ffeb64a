// Package executor runs attempts of tasks on a node. Each task type has an
// implementation of Executor in a folder of its own; all of them pass the
// conformance suite in executortest. The package does not depend on Temporal. It may
// import proto, workflows/interpreter, golang.org/x/sys and the standard library.
package executor
