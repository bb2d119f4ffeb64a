// Package workspace keeps what a task sees beside its program: a private
// directory for each attempt, or for the instances of a batch in turn, with the
// files by which data comes in and goes out, and the variables SWITCHYARD_* that
// name them. It may import proto's well-known types and the standard library.
//
//	root/
//	  build-1234567/         0700, gone after Close
//	    input.json           the task's input, its parents' outputs, the context
//	    output               written by the task, or not
//	    context-update       likewise
//	    checkpoint           left by an attempt before, or written by the task
//	    tmp/                 scratch space, unless the root has another folder for it
//
// A task may write anything into its directory, so what is read back is
// bounded, must be a plain file, and is parsed with errors that show its author
// what to mend.
package workspace
