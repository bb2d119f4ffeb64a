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

// frame returns an event as it is sent. The event has no id line if id is "": a client that continues then continues after
// the event before it.
func frame(event, id string, data []byte) []byte {
	b := make([]byte, 0, len(event)+len(id)+len(data)+24)
	b = append(append(append(b, "event: "...), event...), '\n')
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}

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
