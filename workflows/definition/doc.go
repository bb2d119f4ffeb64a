// Package definition reads, checks and explains workflow definitions: the
// YAML and JSON documents that people write, as the message v1.Definition.
//
// A document goes through four steps, each of which adds to one list of
// problems, so that a person sees all of them at once, and to one of warnings (warnings.go):
//
//	text ── yaml.go, json.go ──> node tree ── decode.go, defaults.go, spec.go ──> message ── rules.go, graph.go, expressions.go ──> checked
//	                             (positions)                                     (places)
//
// The definition that is inline in a task of type run takes the same steps by
// itself (inline.go). task_fields.go lists which fields have no effect on which tasks. inputs.go and input_texts.go are about what a run is given,
// run_defaults.go about what a fleet settles where a definition does not say.
//
// The two front ends end in the same tree, which is why YAML and JSON are
// equal; everything after that knows no format. A definition that arrives as a
// message takes the last step only, without positions.
//
// The package is pure: it imports proto, workflows/condition, workflows/cron, workflows/nearest,
// workflows/podspec, workflows/policy, workflows/secretref, workflows/sshkey, protovalidate and a YAML parser, and neither Temporal nor
// anything that does I/O.
package definition
