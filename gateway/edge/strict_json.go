package edge

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// strictJSON reads JSON requests. Unlike the codec of connect it refuses fields
// that the model does not have: a mistyped condition or timeout would else start
// a run without it.
type strictJSON struct{ name string }

var _ connect.Codec = strictJSON{}

// StrictJSONs returns the codecs for both ways in which clients name JSON. They refuse unknown fields.
func StrictJSONs() []connect.HandlerOption {
	return []connect.HandlerOption{
		connect.WithCodec(strictJSON{"json"}),
		connect.WithCodec(strictJSON{"json; charset=utf-8"}),
	}
}

// Name is the part of the content type that picks the codec.
func (c strictJSON) Name() string { return c.name }

// Marshal writes a message.
func (c strictJSON) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend writes a message behind what dst holds.
func (c strictJSON) MarshalAppend(dst []byte, message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", message)
	}
	return protojson.MarshalOptions{}.MarshalAppend(dst, m)
}

// Unmarshal reads a message.
func (c strictJSON) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", message)
	}
	if len(data) == 0 {
		return errors.New("there is no JSON; a request without fields is {}")
	}
	if err := protojson.Unmarshal(data, m); err != nil {
		return fmt.Errorf("%s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return nil
}
