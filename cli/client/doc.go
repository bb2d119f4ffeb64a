// Package client calls a gateway for the commands: single calls with a time limit and
// errors with exit codes, runs and instances page by page, streams that outlast
// a gateway which goes away for a while, and sessions with attempts that run.
//
//	stream ──> message, message, ... ──> end of the stream
//	             │   ^
//	             v   │ reconnect, within Patience
//	          gateway away ──> Failure
//
// It may import proto, activities/sessions/wire, workflows/definition, workflows/names, cli/exit, cli/output and drawing/words.
package client
