// Package command decides what follows from what people ask of a run. [Updates] lists the updates that they can send. A [State]
// checks a command, says why it cannot be carried out now, and returns the [Effect]s of one that can. It also knows what people
// have decided before: who has cancelled the run, who has approved it, and which updates were carried out.
//
// The package is pure: it imports proto, workflows/core/dag, workflows/core/fanout, workflows/core/flight, workflows/names and
// workflows/phrase, and nothing of Temporal.
package command
