// Package eventstream writes streams of server-sent events: with comments while there are no events, and an end for readers
// that take nothing.
//
// Of this module it imports nothing.
package eventstream
