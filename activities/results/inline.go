package results

import (
	"strings"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// MaxInline is the largest output in bytes that is passed inline. A larger one is read from the
// attempt's record.
const MaxInline = 4 << 10

// Fits reports whether a response may be passed whole, where limit is the maximum number of bytes
// of streams and output. An update of the context is always passed inline, but a large one is shown
// from the record.
func Fits(res *historyv1.ExecuteResponse, limit int) bool {
	r := res.GetResult()
	output := proto.Size(r.GetOutput())
	return max(output, proto.Size(r.GetContextUpdate())) <= MaxInline && output+len(r.GetStdout())+len(r.GetStderr()) <= limit
}

// Cut returns the part of a response that may be passed inline. If that is not the whole response,
// Cut sets a reference to the record.
func Cut(res *historyv1.ExecuteResponse, reference string, limit int) *historyv1.ExecuteResponse {
	if Fits(res, limit) {
		return res
	}
	res = proto.CloneOf(res)
	res.Record = reference
	r := res.GetResult()
	room := limit
	if size := proto.Size(r.GetOutput()); size <= min(MaxInline, room) {
		room -= size
	} else {
		r.Output = nil
	}
	// Standard error gets up to half of the room, because it explains a failure.
	errRoom := min(len(r.Stderr), max(room/2, room-len(r.Stdout)))
	r.Stderr, r.StderrTruncated = cutFront(r.Stderr, errRoom, r.StderrTruncated)
	r.Stdout, r.StdoutTruncated = cutFront(r.Stdout, room-errRoom, r.StdoutTruncated)
	return res
}

// cutFront keeps the last n bytes of s, starting at a character boundary.
func cutFront(s string, n int, truncated bool) (string, bool) {
	if len(s) <= n {
		return s, truncated
	}
	return strings.ToValidUTF8(s[len(s)-max(n, 0):], ""), true
}
