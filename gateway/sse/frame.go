package sse

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// endEvent is the name of the last event of a stream.
const endEvent = "end"

// marshalMessage returns a message as one line of JSON, including zero fields, as in the lists of REST.
func marshalMessage(m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	var line bytes.Buffer // protojson inserts spaces at random
	if err := json.Compact(&line, text); err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return line.Bytes(), nil
}
