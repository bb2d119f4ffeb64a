// Package mask replaces the values of secrets in a task's output and results. It also finds values that are split across
// writes, and values in the encodings that programs commonly apply: base64, URLs and JSON.
//
//	values ── patterns.go ──> patterns ── automaton.go ──> Set ── stream.go ──> masked bytes
//
// The package does not protect against a task that leaks a secret on purpose: it finds no other encoding.
//
// The package is pure and imports the standard library only.
package mask
