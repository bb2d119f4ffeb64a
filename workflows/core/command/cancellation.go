package command

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/phrase"
)

// Encodings of arguments, as Temporal names them.
const (
	encodingJSON      = "json/plain"
	encodingProtoJSON = "json/protobuf"
)

// ReadCancel reads the argument of a signal that cancels the run: a RunCommand, a plain reason, or anything else but another
// object, such as one that names a task. It returns the person, and as reason one line for the run to show; both are empty if the
// argument has neither. refusal is why the signal does not cancel the run, or "" if it does.
//
// A JSON object must be known as a whole, because it may mean less than the run; a message of another program may have fields that
// this version does not know.
func ReadCancel(data []byte, encoding string) (c *historyv1.TaskCommand, refusal string) {
	c = &historyv1.TaskCommand{}
	read := protojson.UnmarshalOptions{DiscardUnknown: encoding == encodingProtoJSON}
	switch data = bytes.TrimSpace(data); {
	case !bytes.HasPrefix(data, []byte("{")):
		//workflowcheck:ignore (a string is decoded in one way)
		if encoding == encodingJSON && json.Unmarshal(data, &c.Reason) != nil {
			c.Reset() // it cancels without a reason
		}
	case read.Unmarshal(data, c) != nil:
		return &historyv1.TaskCommand{}, `the argument of the signal is neither a reason nor {"reason": "..."}`
	case c.GetTask() != "":
		return c, "signals cannot cancel a task; use `switchyard runs cancel RUN TASK`"
	}
	if c.Reason = dag.OneLine(c.GetReason()); c.GetBy() != "" || c.GetReason() != "" {
		c.Reason = phrase.Because(phrase.By("cancelled", c.GetBy()), c.GetReason())
	}
	return c, ""
}
