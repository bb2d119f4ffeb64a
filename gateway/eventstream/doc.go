// Package eventstream writes streams of server-sent events. It sends comments during pauses, and ends streams whose clients
// have stalled.
//
// Of this module it imports nothing.
package eventstream
