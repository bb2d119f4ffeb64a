// Package condition checks and evaluates the expressions of tasks: CEL over the results of a task's ancestors and over the run.
// The purpose of an expression is its Kind:
//
//	Condition   condition      true or false       parent, workflow
//	Count       parallel       an integer          parent, workflow
//	Items       foreach        a list              parent, workflow
//	CacheKey    cache.key      any value but null  parent, workflow, input
//	Retry       retry.when     true or false       attempt, workflow
//	Value       ${{ }}         any value           parent, workflow, input
//	Notify      notify.if      true or false       run, event, task
//	Message     notify.message any value           run, event, task
//
//	parent.<task>   exitCode stdout stderr state output stdoutTruncated
//	                stderrTruncated, and the same under .result; of a task that
//	                fans out: exitCode state outputs count completed failed
//	workflow        name runId context input
//	input           the task's own input, and in an instance item index count
//	attempt         exitCode stdout stderr stdoutTruncated stderrTruncated state
//	                reason number
//	run             id name state reason error failed generation trigger
//	                submittedBy batch input
//	event           what has happened, as in notify.on
//	task            the task that it is about, or ""
//
// In the kinds Count, Items, CacheKey and Value, discover.files is short for parent.discover.output.files.
//
// Check and CheckTemplate are for submission: they have the graph and show a person what is wrong and where. An Evaluator is
// for the moment when a value is needed: it has the values, caches compiled programs, and bounds the cost of every
// expression.
//
// An expression goes through these steps, each in a file of the same name:
//
//	token ─> rewrite ─> CEL parse ─> reference ─> CEL check ─> program ─> value
//	           │            │            │            │
//	           └────────────┴─ *Error, placed in the expression as written
//
// template splits a text with `${{ }}` into parts and render joins them again.
//
// The package is pure: it may import proto, workflows/nearest, workflows/structs, CEL and the standard library, and neither
// Temporal nor anything else of Switchyard. Nothing here may run in workflow code, because CEL walks maps in random order and its
// cost model changes between versions.
package condition
