package limits

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// MaxPayloadBytes keeps a payload below Temporal's limit of 2 MB, past which the server ends the whole workflow.
const MaxPayloadBytes = 1900 << 10

// surelySmall is a message size up to which the JSON form cannot be too large, because one byte takes at most six in JSON.
const surelySmall = MaxPayloadBytes / 7

// CheckSize returns an error if a message is too large to be sent. Without the check, the SDK would fail the workflow task
// again and again.
func CheckSize(m proto.Message) error {
	if proto.Size(m) <= surelySmall {
		return nil
	}
	text, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	// The spaces in the JSON depend on the binary, but the decision must not.
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return err
	}
	if size := compact.Len() + bytes.Count(compact.Bytes(), []byte(",")); size > MaxPayloadBytes {
		return fmt.Errorf("the request takes %d bytes, which is too large; at most %d can be sent", size, MaxPayloadBytes)
	}
	return nil
}
