// Package ticket lets streams of sessions in to a node, once each: a gateway signs the header of a stream with the key that it
// has given the node with the link, and the node checks it.
//
// It imports proto and the standard library, and protobuf.
package ticket
