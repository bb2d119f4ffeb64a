// Package subagent runs tasks of type "subagent": agents that are driven by a language model, or by a program on the
// node.
//
//	restore the journal ──> ask the model ──> record the reply ──> answer? ──> output
//	                             ▲                                   │ calls
//	                             └── record the end <── call <── record the start
//
// Recorded entries survive the worker: the next attempt, on any node, continues with the next step. A reply is recorded
// before it is acted on, so that no reply is paid for twice. A call whose start was recorded but not its end is never
// repeated, because it may have had its effect.
//
// It may import proto, activities/executor, activities/hostlist, the packages below it, workflows/structs, github.com/santhosh-tekuri/jsonschema and
// the standard library.
package subagent
