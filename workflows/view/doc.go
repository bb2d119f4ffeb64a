// Package view holds a run as people see it: its tasks, their instances and their attempts. It answers the queries "status"
// and "instances", and writes the events of the run into its log. The run decides nothing by it.
//
// Each change has its own revision, so that a watcher receives only what is new. The cost of an answer depends on what has
// changed and on the number of its instances, not on the size of the run.
//
// A [Status] keeps only what nothing else knows: times, attempts, and what is still to be logged. Everything else is read from the
// core, the records and the units in flight when it is asked for (answer.go).
//
// The package is pure: it imports proto, workflows/core/flight, workflows/core/dag, workflows/definition, workflows/eventlog,
// workflows/phrase and workflows/structs, and nothing of Temporal.
package view
