package results

import (
	"strings"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// MaxInline is the largest output, in bytes, that travels with an answer;
// a larger one is read from the attempt's record.
const MaxInline = 4 << 10

// Fits reports whether an answer may travel whole, with at most limit bytes of streams
// and output. An update of the context travels always, but is shown from the record
// where it is large.
func Fits(res *v1.ExecuteResponse, limit int) bool {
	r := res.GetResult()
	output := proto.Size(r.GetOutput())
	return max(output, proto.Size(r.GetContextUpdate())) <= MaxInline && output+len(r.GetStdout())+len(r.GetStderr()) <= limit
}

// Cut returns what of an answer may travel; it has a reference to the record when that
// is not all.
func Cut(res *v1.ExecuteResponse, reference string, limit int) *v1.ExecuteResponse {
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
	// Standard error gets up to half: it is what explains a failure.
	errRoom := min(len(r.Stderr), max(room/2, room-len(r.Stdout)))
	r.Stderr, r.StderrTruncated = cutFront(r.Stderr, errRoom, r.StderrTruncated)
	r.Stdout, r.StdoutTruncated = cutFront(r.Stdout, room-errRoom, r.StdoutTruncated)
	return res
}

// cutFront keeps the last n bytes of s, from the start of a character on.
func cutFront(s string, n int, truncated bool) (string, bool) {
	if len(s) <= n {
		return s, truncated
	}
	return strings.ToValidUTF8(s[len(s)-max(n, 0):], ""), true
}
