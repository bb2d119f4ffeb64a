// Package secrets resolves references to secrets, such as "file:/run/secrets/token", on the node that runs the attempt.
// The package activities/secrets/mask keeps the values out of the attempt's output and results.
//
// It imports workflows/secretref and the standard library.
package secrets
