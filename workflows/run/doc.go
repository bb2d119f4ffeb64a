// Package run has the workflows Run, which runs a definition, and FanOut, which runs a partition of a large fan-out
// through for its run. The code is deterministic: it decides nothing itself but hands what has happened to the pure core in
// workflows/dag, and does what that decides.
//
// One round of Run:
//
//	wait ── an attempt ended, a back-off is over, a node was found, a person said so
//	  │
//	gather everything that has happened ──> dag.State.Apply ──> Decisions
//	  │                                                            │
//	  │                                             Evaluate ──────┤ conditions, counts, lists,
//	  │                                                            │ cache keys, retry.when, templates
//	  └── Execute on the node's queue <── Place <── admission <────┘
//	      approvals wait for a person, tasks of type run are runs of their own
//
// Tasks and the instances that they fan out into are one numbering, that of the core.
// What runs together is a unit: a task, an instance, or the instances of a batch,
// which are one activity Execute. How it ends is an end for each of them.
//
// A unit that needs a lock asks for it between admission and placement, and gives it back
// when it has ended. A run of a workflow with a limit on its runs asks for a slot of its own
// before anything starts.
//
// What the run shows is its status, for the queries "status" and "instances"; what
// has happened is in its event log, for the query "events". The log is stored in
// slices: when it has grown, before the run continues as new, and with
// the final status. A run that has ended continues as another generation: an execution
// under the same id, which begins with the status that is stored.
//
// A run whose history has grown continues as new when nothing is in flight. Where that does not come, the nodes
// detach the attempts that take long, and the next execution reattaches them; see detach.go. Child runs
// continue, too, and the next execution awaits them; see child_run.go.
//
// People steer a run by updates. A handler validates the update and
// leaves it to the loop, which executes it between two rounds. The node of an attempt
// suspends and resumes it first, by the activity Steer. To the core, a suspended attempt runs. On its last steps to another
// execution the run refuses updates, and the client sends them again.
//
// It may import proto, workflows/admission, workflows/dag, workflows/definition, workflows/eventlog, workflows/limits,
// workflows/names, workflows/options, workflows/pending, workflows/phrase, workflows/status, workflows/structs and
// workflows/visibility, and of Temporal only go.temporal.io/sdk/workflow and temporal. Activities are called by the names in workflows/names.
package run
