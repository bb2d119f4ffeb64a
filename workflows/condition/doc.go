// Package condition checks and evaluates the conditions of tasks: boolean
// expressions in CEL over what a task's ancestors left and over the run.
//
//	parent.<task>   exitCode stdout stderr state output stdoutTruncated
//	                stderrTruncated, and the same under .result
//	workflow        name runId context input
//
// Check is for the moment a workflow is submitted: it knows the graph and tells
// a person what is wrong and where. An Evaluator is for the moment a task may
// start: it knows values, keeps compiled programs, and bounds what an
// expression can cost, whatever it says.
//
// An expression goes through these steps, in files of the same names:
//
//	token ─> rewrite ─> CEL parse ─> reference ─> CEL check ─> program
//	           │            │            │            │
//	           └────────────┴─ *Error, placed in the expression as written
//
// The package is pure: it may import proto, CEL and the standard library, and
// neither Temporal nor anything else of Switchyard. CEL walks maps in random
// order and its cost model changes between versions, so that nothing here may
// run in workflow code.
package condition
