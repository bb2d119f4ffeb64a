// Package library keeps workflow definitions under their names, for runs that
// are started by name: by the gateway, and by tasks of type "run".
//
// A stored definition is a Temporal Schedule with the id "workflow:<name>". Its action
// is the workflow Run of the definition, from whose input the definition is read
// back; so the schedule can be triggered by hand, too. Its times are those of the
// definition's `schedule`. Without one it has none and is paused: by itself it starts
// nothing (and an unpaused one without a next action is dropped by the server after some days).
//
// A definition in the place of another one takes its times with it. A schedule that a person has paused stays so, unless
// the new definition says `paused`, or the old one did.
//
// It may import proto, activities/schedules, workflows/names, workflows/definition, workflows/visibility and the Temporal SDK.
package library
