// Package workflows holds the Temporal workflows: Run, which carries a run
// through, and Node, which registers a machine. The code is deterministic: it
// decides nothing itself but hands what has happened to the pure core in
// workflows/dag and carries out what that decides.
//
// One round of Run:
//
//	wait ── an attempt ended, a back-off is over, a node was found, cancel
//	  │
//	gather everything that has happened ──> dag.State.Apply ──> Decisions
//	  │                                                            │
//	  └── Execute on the node's queue <── Place <── Evaluate <─────┘
//
// It may import proto, workflows/names, workflows/dag and workflows/definition,
// and of Temporal only go.temporal.io/sdk/workflow and temporal. Activities are
// called by the names in workflows/names.
package workflows
