// Package explain implements the workflow Explain, which asks the placement queue about a task. It imports proto, workflows/names
// and workflows/options, and of Temporal only what workflow code may.
package explain
