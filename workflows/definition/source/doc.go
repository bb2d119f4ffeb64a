// Package source reads a YAML or JSON document into a tree of nodes that know their place, and collects what is wrong
// with it. It knows nothing of what a definition is.
//
//	Report.Read(data) ──> Node tree ──> the caller's checks, each with a Path ──> Report.Err: Problems with line and column
//
// The work for a document is bounded: by its size, its depth, and the values that YAML aliases stand for.
//
// It imports proto and a YAML parser.
package source
