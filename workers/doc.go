// Package workers holds the process roles: a control worker, which carries runs
// and places their tasks, and a node worker, which runs tasks on a machine. It
// wires workflows, activities and Temporal together and is the only package
// that imports both sides.
//
// A Control is a process of the control plane. All of them keep the registry of
// nodes. The process that runs the activity Lead owns the placement queue for one
// term and carries the runs:
//
//	stands by ── it receives Own ──> term: queue, fleet, collector, worker of the queue "control"
//	    ▲                                  │
//	    └── it stops, or its lease was not renewed in time ◄┘
//
// A Node locks its name on its machine, registers, and only then accepts tasks. It
// registers again when the server has lost it, and stops when another live worker
// has taken its name.
package workers
