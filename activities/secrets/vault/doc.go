// Package vault keeps the values of secrets in a store, encrypted with a key that is not in the store.
//
//	key file (0600) ──┐
//	value ────────────┴─ AES-256-GCM ──> secrets/<name>: nonce, sealed value, role, version, id of the key
//
// Name, role and version are bound to the sealed value: a record that was moved to another name, or whose role was lowered
// in the store, does not open. A deleted secret leaves a record without a value, so that its version is never used again.
//
// The package may import proto and activities/store.
package vault
