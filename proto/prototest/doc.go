// Package prototest helps tests to prove that a copy of a message omits no field. It imports nothing but
// protobuf.
package prototest
