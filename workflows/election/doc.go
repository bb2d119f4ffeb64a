// Package election implements the workflow Leader, which elects the process that leads: the process that runs
// its only activity. It imports proto, workflows/names and workflows/options, and of Temporal only what workflow code may.
package election
