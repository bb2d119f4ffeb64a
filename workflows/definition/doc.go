// Package definition reads, checks and explains workflow definitions: the
// YAML and JSON documents that people write, as the message v1.Definition.
//
// A document goes through four steps, each of which adds to one list of
// problems, so that a person sees all of them at once:
//
//	text ── yaml.go, json.go ──> node tree ── decode.go, spec.go ──> message ── rules.go, graph.go, conditions.go ──> checked
//	                             (positions)                        (places)
//
// The two front ends end in the same tree, which is why YAML and JSON are
// equal; everything after that knows no format. A definition that arrives as a
// message takes the last step only, without positions.
//
// The package is pure: it imports the data model, protovalidate, a YAML parser
// and package condition, and neither Temporal nor anything that does I/O.
package definition
