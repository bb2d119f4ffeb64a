// Package structs holds what everything that reads or changes a structpb.Struct shares. CheckJSON is the rule for the data of
// runs: what a JSON text contains arrives exactly, or is refused with its place. Number formats a number for people, and Bytes
// estimates a size. The package is pure, and imports nothing of this module.
package structs
