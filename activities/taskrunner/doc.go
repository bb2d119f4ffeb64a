// Package taskrunner has the activities of a node: Execute, Detach, Steer, Drain and Undrain, and AwaitAnswer, with which
// the control process reads what a lost node has recorded. Errors are translated here: a task that failed is an answer,
// a cancelled one is an answer too, and only a broken system is an error.
//
// # Execute
//
// A request is for a task, for an instance of one that is fanned out, or for a batch of
// instances. What runs is a member of the request in each case, and passes through:
//
//	inputs                      what all members share: outputs of parents, context, items
//	Node.awaitSecrets           values of secrets, which all members share, and what is to be masked
//	work.prepare                spec and env rendered, checkpoint fetched, workspace made
//	work.do                     the program, from its start to its end
//	Node.keepResult, batch.add  the result: recorded, cut to what may travel
//
// # An attempt
//
//	accepted ──> confirmed by an acknowledged heartbeat ──> spawned ──> ended ──> recorded ──> reported
//	                                                          │  ▲
//	                                                  detached ┘  └ reattached by another activity
//
// An attempt may outlive the call of Execute that has brought it: Detach ends the call, and
// another one reattaches the attempt; see detach.go. That of an executor.Survivor may outlive the
// worker, too: it leaves a recovery file, and Recover of the next worker continues with the orphan;
// see recovery_file.go, recovery.go and orphan_overdue.go. That of an executor.Remote runs outside of the node, which lets
// go of it for another node to continue; see remote.go. That of an executor.Lasting runs until it is stopped; see lasting.go.
// Sessions enter an attempt by Enter.
//
// Beside it a checkpointer saves what must not be lost with the node, checkpoints and
// the results of a batch so far, and the heartbeats report it to the server.
//
// # Imports
//
// It imports proto, workflows/names, workflows/phrase, workflows/condition, workflows/secretref, workflows/sshkey, the Temporal SDK, the leaves activities/heartbeat and
// activities/results, and activities/executor, activities/logs, activities/store, activities/registry,
// activities/secrets, activities/sessions/wire and activities/metrics.
package taskrunner
