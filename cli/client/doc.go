// Package client calls a gateway for the commands: single calls with a time limit and
// errors with exit codes, runs and instances page by page, and streams that outlast
// a gateway which goes away for a while.
//
//	stream ──> message, message, ... ──> end of the stream
//	             │   ^
//	             v   │ reconnect, within Patience
//	          gateway away ──> Failure
//
// It may import proto, workflows/definition, workflows/names, cli/exit, cli/output and cli/tui.
package client
