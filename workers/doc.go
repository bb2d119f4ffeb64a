// Package workers holds the process roles: a control worker, which carries runs
// and places their tasks, and a node worker, which runs tasks on a machine. It
// wires workflows, activities and Temporal together and is the only package
// that imports both sides.
package workers
