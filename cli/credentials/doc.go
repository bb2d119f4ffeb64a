// Package credentials stores the gateway tokens of a person in a file that only this person can read.
//
// It may import cli/exit.
package credentials
