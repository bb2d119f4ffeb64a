// Package election implements the workflow Owner, which elects the process that owns the placement queue: the process that runs
// its only activity. It imports proto, workflows/names and workflows/options, and of Temporal only what workflow code may.
package election
