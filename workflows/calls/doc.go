// Package calls sends the commands of a run to Temporal: activities, local activities, timers and signals. It charges each to the
// budget of the workflow task that sends it, calls back when an answer has come, and waits for the end of an outage of the store.
//
// It imports workflows/definition, workflows/names, workflows/options and workflows/pending, and of Temporal only what
// workflow code may.
package calls
