// Package subagent runs tasks of type "subagent": an agent that a language model leads, or a program on the node.
//
//	restore the journal ──> ask the model ──> record the reply ──> answer? ──> output
//	                             ▲                                   │ calls
//	                             └── record the end <── call <── record the start
//
// What is recorded survives the worker: the next attempt, on any node, continues with the next step. A reply is recorded
// before anything of it is done, so that none is paid twice; a call that was recorded and whose end was not is never made
// again, because it may have had its effect.
//
// It may import proto, activities/executor, the packages below it, github.com/santhosh-tekuri/jsonschema and the standard
// library.
package subagent
