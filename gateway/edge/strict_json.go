package edge

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"switchyard/gateway/rpcerror"
	"switchyard/workflows/structs"
)

// strictJSON is a JSON codec. Unlike Connect's own codec it rejects unknown fields: a mistyped condition or
// timeout would otherwise start a run without it. It also rejects data that would change, such as an ID that is rounded.
type strictJSON struct{ name string }

var _ connect.Codec = strictJSON{}

// StrictJSONs returns codecs for both content types that clients use for JSON. They reject unknown fields.
func StrictJSONs() []connect.HandlerOption {
	return []connect.HandlerOption{
		connect.WithCodec(strictJSON{"json"}),
		connect.WithCodec(strictJSON{"json; charset=utf-8"}),
	}
}

// Name returns the part of the content type that selects the codec.
func (c strictJSON) Name() string { return c.name }

// Marshal encodes a message.
func (c strictJSON) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend appends the encoded message to dst.
func (c strictJSON) MarshalAppend(dst []byte, message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a proto message", message)
	}
	return protojson.MarshalOptions{}.MarshalAppend(dst, m)
}

// Unmarshal decodes a message.
func (c strictJSON) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a proto message", message)
	}
	if len(data) == 0 {
		return errors.New("the body is empty; send {} for a request without fields")
	}
	err := structs.CheckJSON(data)
	if err == nil {
		err = protojson.Unmarshal(data, m)
	}
	if err != nil {
		return fmt.Errorf("%s: %s", m.ProtoReflect().Descriptor().Name(), rpcerror.Malformed(data, m, err))
	}
	return nil
}
