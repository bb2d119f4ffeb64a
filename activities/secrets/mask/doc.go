// Package mask replaces the values of secrets in what a task prints and leaves, also where they are split across writes,
// and in the encodings that programs use without being asked: base64, URLs and JSON.
//
//	values ── patterns.go ──> patterns ── automaton.go ──> Set ── stream.go ──> masked bytes
//
// It is no defence against a task that wants to give a secret away: any other encoding passes.
//
// The package is pure and imports the standard library only.
package mask
