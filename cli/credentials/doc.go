// Package credentials keeps the tokens with which a person is logged in to gateways, in a file that only this person reads.
//
// It may import cli/exit.
package credentials
