// Package condition checks and evaluates the expressions of tasks: CEL over what a
// task's ancestors left and over the run. What an expression is for is its Kind:
//
//	Condition   condition      true or false       parent, workflow
//	Count       parallel       an integer          parent, workflow
//	Items       foreach        a list              parent, workflow
//	CacheKey    cache.key      any value but null  parent, workflow, input
//	Retry       retry.when     true or false       attempt, workflow
//	Value       ${{ }}         any value           parent, workflow, input
//
//	parent.<task>   exitCode stdout stderr state output stdoutTruncated
//	                stderrTruncated, and the same under .result; of a task that
//	                fans out: exitCode state outputs count completed failed
//	workflow        name runId context input
//	input           the task's own input, and in an instance item index count
//	attempt         exitCode stdout stderr stdoutTruncated stderrTruncated state
//	                reason number
//
// Where neither truth is asked for, discover.files is short for
// parent.discover.output.files.
//
// Check and CheckTemplate are for the moment a workflow is submitted: they know the
// graph and show a person what is wrong and where. An Evaluator is for the moment a
// value is needed: it knows values, keeps compiled programs, and bounds what an
// expression can cost, whatever it says.
//
// An expression goes through these steps, in files of the same names:
//
//	token ─> rewrite ─> CEL parse ─> reference ─> CEL check ─> program ─> value
//	           │            │            │            │
//	           └────────────┴─ *Error, placed in the expression as written
//
// A text with `${{ }}` is taken apart by template and put together by render; plain
// finds that a simple selection is right without the way above.
//
// The package is pure: it may import proto, workflows/nearest, CEL and the standard
// library, and neither Temporal nor anything else of Switchyard. CEL walks maps in random
// order and its cost model changes between versions, so that nothing here may
// run in workflow code.
package condition
