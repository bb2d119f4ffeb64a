// Package status holds a run as people see it: its tasks, their instances and their attempts. It answers the queries
// "status" and "instances", and it writes the events of the run into its log.
//
// Each change has a revision of its own, so that a watcher gets only what is new. An answer costs what has changed, not
// what the run holds.
//
// The package is pure: it imports proto, workflows/dag, workflows/names, workflows/eventlog, workflows/phrase and
// workflows/structs, and nothing of Temporal.
package status
