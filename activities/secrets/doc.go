// Package secrets resolves references to secrets, such as "file:/run/secrets/token", on the node that an attempt runs on.
// The package activities/secrets/mask keeps their values out of what the attempt prints and leaves.
//
// It imports workflows/secretref and the standard library.
package secrets
