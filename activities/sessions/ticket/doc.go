// Package ticket authorizes each stream of a session on a node once: a gateway signs the header of a stream with the key that
// it has sent to the node over the link, and the node checks the signature.
//
// It imports proto and the standard library, and protobuf.
package ticket
