// Package secretref reads references to secrets: the values of `secretEnv`, such as "file:/run/secrets/token". A
// reference is no secret, and travels wherever a definition does.
//
// The package is pure and imports workflows/nearest and the standard library.
package secretref
