// Package vault stores the values of secrets encrypted, with a key that is not in the store.
//
//	key file (0600) ──┐
//	value ────────────┴─ AES-256-GCM ──> secrets/<name>: nonce, sealed value, role, version, id of the key
//
// The name, the role and the version of a secret are authenticated with its sealed value: a record that was moved to
// another name, or whose role was lowered in the store, cannot be opened. Deleting a secret leaves a record without a
// value, so that no version number is used twice.
//
// The package may import proto and activities/store.
package vault
