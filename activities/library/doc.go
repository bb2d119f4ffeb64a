// Package library stores workflow definitions under their names, for runs that are started by name: by the gateway, and by
// tasks of type "run".
//
// A stored definition is a Temporal Schedule with the id "workflow:<name>". Its action starts the workflow Run with the
// definition in its input, and the definition is read back from that input. So a person can also trigger the schedule by hand.
// The times of the schedule are those of the definition's `schedule`. A definition without one gets a schedule without times
// that is paused and starts nothing by itself; the server would drop an unpaused schedule without a next action after some
// days.
//
// A definition that replaces another one also replaces its times. A schedule that a person has paused stays paused, unless the
// new definition sets `paused` or the old one did.
//
// It may import proto, activities/schedules, workflows/names, workflows/dataconverter, workflows/definition, workflows/visibility and the Temporal SDK.
package library
