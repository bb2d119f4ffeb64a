// Package workflows holds the Temporal workflows: Run, which carries a run
// through; Node, the registry entry of a machine; Owner, the election of the process
// that owns the placement queue; and Explain, which asks that queue. The code is deterministic: it
// decides nothing itself but hands what has happened to the pure core in
// workflows/dag and carries out what that decides.
//
// One round of Run:
//
//	wait ── an attempt ended, a back-off is over, a node was found, cancel, retry
//	  │
//	gather everything that has happened ──> dag.State.Apply ──> Decisions
//	  │                                                            │
//	  └── Execute on the node's queue <── Place <── Evaluate <─────┘
//
// What the run shows is on its board, for the query "status"; what has happened is
// in its event log, for the query "events". The log is stored in parts: when it has
// grown, before the run goes on in another execution, and with the final status.
// A run that has ended goes on as another generation: an execution under the same
// id, which begins with the status that is stored.
//
// It may import proto, workflows/names, workflows/dag and workflows/definition,
// and of Temporal only go.temporal.io/sdk/workflow and temporal. Activities are
// called by the names in workflows/names.
package workflows
