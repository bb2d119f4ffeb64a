// Package run implements the workflows Run, which executes a definition, and FanOut, which executes one partition of a large
// fan-out on behalf of its run. The code is deterministic. It makes no decisions about tasks itself: it reports everything that
// has happened to the pure cores in workflows/core and carries out what they decide.
//
// One round of Run:
//
//	wait ── an attempt ended, a back-off is over, a node was found, a person sent a command
//	  │
//	gather everything that has happened ──> dag.State.Apply ──> Decisions
//	  │                                                            │
//	  │                                             Evaluate ──────┤ conditions, counts, lists,
//	  │                                                            │ cache keys, retry.when, templates
//	  └── Execute on the node's queue <── Place <── admission <────┘
//	      approvals wait for a person, tasks of type run are runs of their own
//
// One type does all this, run, with its methods in files by subject. The cores return effects as values, and each kind of them is
// carried out in one place, which hands the answers back to its core:
//
//	the loop          run.go, run_start.go, run_end.go
//	what runs         effects_flight.go, nodes.go and child_runs.go (the effects of workflows/core/flight)
//	large fan-outs    effects_fanout.go (the effects of workflows/core/fanout, in a run and in its partitions)
//	child workflows   effects_child.go (the effects of workflows/core/child)
//	data              requests.go and evaluate.go (workflows/core/dataflow: what nodes are sent, and what expressions see)
//	people            updates.go, signals.go and effects_command.go (the effects of workflows/core/command)
//	what others see   search_attributes.go, events.go, queries.go, notify.go
//	the workflow      history.go, snapshot.go and continue_as_new.go (from one execution to the next); workflows/calls sends the
//	                  commands to Temporal
//
// Tasks and the instances that they fan out into share one numbering, that of the core. A unit is what runs together: a task,
// an instance, or the instances of a batch, which run in one Execute activity. When a unit ends, each of its members gets an
// end of its own.
//
// A unit that needs a lock requests it between admission and placement, and releases it when the unit has ended. A run of a
// workflow with a limit on its runs requests a run slot before anything starts.
//
// The status of the run answers the queries "status" and "instances"; its event log answers the query "events". The log is
// stored in slices: when it has grown, before the run continues as new, and with the final status. A run that has ended can
// continue as another generation: an execution under the same ID that starts from the stored status.
//
// A run whose history has grown continues as new when nothing is in flight. If it never becomes quiet, the nodes detach the
// attempts that take long, and the next execution reattaches them; see history.go. Child runs keep running, and the next
// execution waits for them; see workflows/core/child.
//
// People steer a run by updates. A handler validates the update and queues it for the main loop, which carries it out between two
// rounds. To suspend or resume an attempt, the run first asks its node with a Steer activity. To the core, a suspended attempt
// is running. During its last steps before continue-as-new the run refuses updates, and the client sends them again. The next
// execution knows the newest updates that were carried out: one that is sent again, because its answer was lost, changes nothing.
//
// It may import proto, workflows/core/flight, workflows/core/fanout, workflows/core/child, workflows/core/command, workflows/core/dag, workflows/core/dataflow,
// workflows/dataconverter, workflows/definition, workflows/eventlog, workflows/calls, workflows/limits, workflows/names, workflows/notification, workflows/options, workflows/phrase, workflows/structs, workflows/view and
// workflows/visibility, and of Temporal only go.temporal.io/sdk/workflow, temporal and converter, and go.temporal.io/api/enums.
// Activities are called by the names in workflows/names.
package run
