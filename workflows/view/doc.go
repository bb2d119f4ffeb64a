// Package view holds a run as people see it: its tasks, their instances and their attempts. It answers the queries "status"
// and "instances", and writes the events of the run into its log. The run decides nothing by it.
//
// Each change has its own revision, so that a watcher receives only what is new. The cost of an answer depends on what has
// changed, not on the size of the run.
//
// A [Status] has its tasks in two parts, each embedded in the next: the table of entries (table.go), and the state that people
// see (shown.go), which follows the dispatches of tasks (dispatch.go). Status itself has the run, answers queries (answer.go),
// and carries everything over to the next execution (state.go).
//
// The package is pure: it imports proto, workflows/core/flight, workflows/core/dag, workflows/names, workflows/eventlog,
// workflows/phrase and workflows/structs, and nothing of Temporal.
package view
