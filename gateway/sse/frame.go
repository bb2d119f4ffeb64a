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

// marshalMessage returns a message as one line of JSON, with its fields that are zero, as the lists of REST have it.
func marshalMessage(m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	var line bytes.Buffer // protojson puts spaces at random places
	if err := json.Compact(&line, text); err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return line.Bytes(), nil
}
