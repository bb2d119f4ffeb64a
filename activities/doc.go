// Package activities holds the Temporal activities: what a run does outside its
// workflow code. Control has those of the control process (Place,
// AwaitPlacement, Explain, Evaluate and the ones that read and write the store),
// Ownership the election of its owner (Own), Node, Presence and Service those of a
// machine (Execute, Heartbeat, Drain and Undrain). Errors are translated here: a task
// that failed is an answer, a cancelled one is an answer too, and only a broken
// system is an error.
//
// It may import proto, workflows/names, workflows/condition, its own
// subpackages and the Temporal SDK.
package activities
