// Package workflows holds the Temporal workflows: Run, which carries a run
// through; Node, the registry entry of a machine; Owner, the election of the process
// that owns the placement queue; Lock, which hands out the places of a mutex, a semaphore or of the
// runs of a workflow; and Explain, which asks the placement queue. The code is deterministic: it
// decides nothing itself but hands what has happened to the pure core in
// workflows/dag and carries out what that decides.
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
// What goes on together is a unit: a task, an instance, or the instances of a batch,
// which are one activity Execute; how that ends is an end for each of them.
//
// A unit that needs a lock asks for it between admission and placement, and has it
// until it is under way no more. A run of a workflow with a limit on its runs asks for its own turn
// before anything starts.
//
// What the run shows is on its board, for the queries "status" and "instances"; what
// has happened is in its event log, for the query "events". The log is stored in
// parts: when it has grown, before the run goes on in another execution, and with
// the final status. A run that has ended goes on as another generation: an execution
// under the same id, which begins with the status that is stored.
//
// A run whose history has grown continues as new when nothing is in flight. Where that does not come, the nodes
// detach the attempts that take long, and the next execution reattaches them; see detach.go. Child runs
// continue, too, and the next execution awaits them; see childrun.go.
//
// What people want of a run are updates. A handler looks whether it makes sense and
// leaves it to the loop, which carries it out between two rounds. To suspend what
// runs, and to let it go on, its node is asked first, by the activity Steer; what is
// suspended runs, as far as the core knows.
//
// It may import proto, workflows/names, workflows/dag, workflows/admission, workflows/definition and workflows/visibility,
// and of Temporal only go.temporal.io/sdk/workflow and temporal. Activities are
// called by the names in workflows/names.
package workflows
