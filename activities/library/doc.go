// Package library keeps workflow definitions under their names, for runs that
// are started by name: by the gateway, and by tasks of type "run".
//
// A stored definition is a Temporal Schedule with the id "workflow:<name>". Its
// spec is empty, and it is paused: by itself it starts nothing (and an unpaused
// one without a next action is dropped by the server after some days). Its action
// is the workflow Run of the definition, from whose input the definition is read
// back; so the schedule can be triggered by hand, too.
//
// It may import proto, workflows/names, workflows/definition, workflows/visibility and the Temporal SDK.
package library
