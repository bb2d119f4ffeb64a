// Package client calls a gateway for the commands: single calls with a time limit and
// errors with exit codes, runs and instances page by page, streams that outlast a
// temporarily unreachable gateway, and sessions with running attempts.
//
//	stream ──> message, message, ... ──> end of the stream
//	             │   ^
//	             v   │ reconnect, within Patience
//	     gateway unreachable ──> Failure
//
// It may import proto, activities/gatewayclient, activities/sessions/wire, workflows/definition, workflows/names, cli/exit, cli/output and drawing/words.
package client
