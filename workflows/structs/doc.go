// Package structs holds the operations of workflows on a structpb.Struct. It is pure, and imports nothing of this module.
package structs
