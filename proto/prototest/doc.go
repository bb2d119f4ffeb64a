// Package prototest helps tests that a copy of a message forgets no field. It imports nothing but protobuf.
package prototest
