// Package structs has what workflows do with a structpb.Struct. It is pure, and imports nothing of this module.
package structs
