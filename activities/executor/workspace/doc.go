// Package workspace provides the surroundings of a task's program: a private
// directory for each attempt, or for the instances of a batch in turn, with the
// files that carry data in and out, and the SWITCHYARD_* variables that
// name them. It may import proto's well-known types, workflows/interpreter, workflows/structs and the standard library.
//
//	root/
//	  build-1234567/         0700, gone after Close
//	    input.json           the task's input, its parents' outputs, the context
//	    output               optional, written by the task
//	    context-update       likewise
//	    checkpoint           left by an earlier attempt, or written by the task
//	    tmp/                 scratch space, unless the root keeps it elsewhere
//
// A task may write anything into its directory. Therefore a file that is read
// back is bounded and must be a regular file, and parse errors show the author
// of the task what to fix.
package workspace
