// Package exportfile reads and writes the file of `switchyard export`: YAML that a person can read and compare.
//
//	version: 1
//	createdAt: 2026-11-29T09:00:00Z
//	key: ...           key of the secrets, sealed with the pass phrase
//	items:             by kind, then name
//	  - kind: token
//	    name: ann/k3x
//	    spec: {...}    the content of the v1.ExportedItem; a definition as people write it
//	complete: true     the end, which a file that was cut short lacks
//
// A kind that joins later needs no new version, because readers refuse kinds that they do not know.
//
//	pass phrase ── scrypt ──> key of the file ── X25519 ──> each secret
//
// A gateway seals the secrets for the public part of the key; the pass phrase and the private part stay in the client.
//
// It may import proto and workflows/definition.
package exportfile
