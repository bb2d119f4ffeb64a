// Package storekey makes and parses the keys under which values are stored.
//
// It imports the standard library only.
package storekey
