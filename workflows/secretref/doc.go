// Package secretref parses references to secrets: the values of `secretEnv`, such as "file:/run/secrets/token". A reference is
// not a secret, and travels wherever a definition does.
//
// The package is pure and imports workflows/nearest and the standard library.
package secretref
