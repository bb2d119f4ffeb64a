// Package sshkey parses the public keys that may log in to a machine by SSH: one per line, as in a file authorized_keys, but
// without options. It is pure: of this module it imports nothing, and of golang.org/x/crypto/ssh it uses the parser alone.
package sshkey
