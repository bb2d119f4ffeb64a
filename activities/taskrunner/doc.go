// Package taskrunner has the activities of a node: Execute, Detach, Steer, Drain and Undrain. It also has AwaitAnswer,
// with which the control process reads what a lost node has recorded. The package translates errors: a failed task and a
// cancelled task are answers, and only a broken system is an error.
//
// # Execute
//
// A request is for a task, for an instance of a fanned-out task, or for a batch of instances. In each case the unit that
// runs is a member of the request. It passes through:
//
//	inputReader                    what all members share: outputs of parents, context, items
//	secretReader                   the values of secrets, shared by all members, and the masks for them
//	work.prepare                   spec and env rendered, checkpoint fetched, workspace made
//	work.do                        the program, from its start to its end
//	records.keepResult, batch.add  the result: recorded, cut to what may travel
//
// execute.go has the activity, and attempt.go its ordinary path from top to bottom.
//
// # An attempt
//
//	accepted ──> confirmed by an acknowledged heartbeat ──> spawned ──> ended ──> recorded ──> reported
//	                                                          │  ▲
//	                                                  detached ┘  └ reattached by another activity
//
// These parts of an attempt own its state, each with the lock that protects it:
//
//	heartbeats    its heartbeats, and the lease that they renew; they report its progress
//	attendance    the activity that waits for it, and its answer
//	recoveryFile  what a later worker needs to continue it
//	steering      the program that can be paused, resumed, stopped or restarted
//	sessionCount  the sessions that are open in it
//
// An attempt may outlive its call of Execute: Detach ends the call, and another call reattaches the attempt (see
// detach.go). An attempt whose executor can Survive may also outlive the worker: it leaves a recovery file, and Recover of
// the next worker continues the orphan (see recovery_file.go, recovery.go and orphan_overdue.go). A node that drains
// hands attempts back (see drain.go), and a worker that stops leaves some to the next one (see handover.go). An attempt of a remote executor runs outside the node, which can let go of it
// for another node to continue (see remote.go). An attempt of a lasting executor runs until it is stopped (see
// lasting.go). An attempt without contact to Temporal ends itself (see lease_expiry.go). Sessions enter an attempt
// through Enter.
//
// While an attempt runs, a checkpointer saves what must survive the node: checkpoints and the results of a batch so far.
// The heartbeats report both to the server.
//
// # Imports
//
// It imports proto, workflows/names, workflows/interpreter, workflows/phrase, workflows/policy, workflows/condition, workflows/definition,
// workflows/secretref, workflows/sshkey, the Temporal SDK, the leaves activities/heartbeat and activities/results, and
// activities/artifacts, activities/environments, activities/executor, activities/gitclone, activities/logs, activities/store,
// activities/registry, activities/secrets, activities/sessions/wire and activities/metrics.
package taskrunner
