// Package source reads a YAML or JSON document into a tree of nodes with positions, and collects problems. It is
// independent of definitions.
//
//	Report.Read(data) ──> Node tree ──> the caller's checks, each with a Path ──> Report.Err: Problems with line and column
//
// The work for a document is bounded by its size, its depth, and the number of values that YAML aliases stand for.
//
// It imports proto, workflows/structs and a YAML parser.
package source
