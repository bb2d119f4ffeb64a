// Package activities holds the Temporal activities: what a run does outside its
// workflow code. Control has those of the control process (Place,
// AwaitPlacement, Explain, Evaluate and the ones that read and write the store),
// Locks and Children what reaches other
// workflows (AskLocks, Holders, Prepare, ChildRunEnds, AwaitRuns), Node, Presence and Service those of a
// machine (Execute, Detach, Steer, Heartbeat, Drain and Undrain). Errors are translated here: a task
// that failed is an answer, a cancelled one is an answer too, and only a broken
// system is an error.
//
// # Execute
//
// A request is for a task, for an instance of one that is fanned out, or for a batch of
// instances. What runs is a member of the request in each case, and goes one way:
//
//	supplies            what all members share: outputs of parents, context, items
//	work.prepare        spec and env rendered, checkpoint fetched, workspace made
//	work.do             the program, from its start to its end
//	keep, batch.add     the result: recorded, cut to what may travel
//
// An attempt may outlive the call of Execute that has brought it: Detach ends the call, and
// another one adopts the attempt; see detach.go. That of an executor.Survivor may outlive the
// worker, too: Recover goes on with it; see survive.go, adopt.go and overdue.go.
//
// Beside it a keeper looks after what must not be lost with the node, checkpoints and
// the results of a batch so far, and the heartbeats tell the server of them.
//
// # Imports
//
// It may import proto, workflows/names, workflows/condition, workflows/definition, its own
// subpackages and the Temporal SDK.
package activities
