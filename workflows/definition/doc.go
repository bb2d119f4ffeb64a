// Package definition reads, checks and explains workflow definitions: the
// YAML and JSON documents that people write, as the message v1.Definition.
//
// A document goes through four steps. Each step adds to one list of problems, so that a person sees all of them at once, and to
// one list of warnings (warnings.go):
//
//	text ── package source ──> node tree ── message.go, defaults.go, spec.go ──> message ── the rules ──> checked
//	                           (positions)                                       (places)
//
// document.go has these steps. Each part of a definition has a type of its own with the rules for that part, such as agentRules
// or scheduleRules: model_rules.go for the rules of the model, task_rules.go and workflow_rules.go for what spans several
// fields, graph.go for dependencies, expressions.go for expressions, and a file for each kind of spec. They share a decoder
// (decoder.go), which knows the place of every value, collects the problems, and has the rules for single texts (text_rules.go).
//
// The inline definition of a task of type run goes through the same steps separately; nested_locks.go checks all of
// them together. task_fields.go lists the fields that have no effect on certain tasks. inputs.go and input_texts.go handle the
// input of a run, and run_defaults.go the values that a fleet supplies where a definition has none.
//
// Both front ends produce the same tree, so YAML and JSON are equivalent and no later step depends on the format. A definition
// that arrives as a message goes through the last step only, without positions.
//
// The package is pure: it imports proto, workflows/bashism, workflows/condition, workflows/cron, workflows/interpreter, workflows/names,
// workflows/nearest, workflows/podspec, workflows/policy, workflows/secretref, workflows/sshkey, workflows/structs, protovalidate and a
// YAML parser, and neither Temporal nor anything that does I/O.
package definition
