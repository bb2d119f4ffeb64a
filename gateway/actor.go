package gateway

import (
	"context"
	"strings"
	"unicode"

	"connectrpc.com/connect"

	"switchyard/gateway/runindex"
	"switchyard/workflows/names"
)

// maxActor bounds the name of an actor, in characters.
const maxActor = 80

// actor returns who sends the request that ctx is of, as runs and events show it, or "" if
// that is not known. Clients are not authenticated: what one says of itself is marked as
// unverified.
func actor(ctx context.Context) string {
	call, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok {
		return ""
	}
	claimed := []rune(strings.TrimSpace(strings.Map(printable, call.RequestHeader().Get(names.ActorHeader))))
	if len(claimed) == 0 {
		return ""
	}
	return string(claimed[:min(len(claimed), maxActor)]) + runindex.Unverified
}

// printable drops what is no character to print, parentheses included: those are the gateway's own.
func printable(r rune) rune {
	if !unicode.IsPrint(r) || r == unicode.ReplacementChar || r == '(' || r == ')' {
		return -1
	}
	return r
}
