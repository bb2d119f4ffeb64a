package rest

import (
	"errors"

	"connectrpc.com/connect"
	"connectrpc.com/vanguard"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// codec is the JSON of REST: zero values are printed, and unknown fields refused.
type codec struct{ vanguard.JSONCodec }

var _ vanguard.RESTCodec = codec{}

func newCodec(types vanguard.TypeResolver) vanguard.Codec {
	return codec{vanguard.JSONCodec{
		MarshalOptions:   protojson.MarshalOptions{Resolver: types, EmitDefaultValues: true},
		UnmarshalOptions: protojson.UnmarshalOptions{Resolver: types},
	}}
}

// Unmarshal reads a body; what it cannot read is the client's fault.
func (c codec) Unmarshal(data []byte, m proto.Message) error {
	return malformed(c.JSONCodec.Unmarshal(data, m))
}

// UnmarshalField reads a body that is one field of the request.
func (c codec) UnmarshalField(data []byte, m proto.Message, field protoreflect.FieldDescriptor) error {
	return malformed(c.JSONCodec.UnmarshalField(data, m, field))
}

func malformed(err error) error {
	if err == nil {
		return nil
	}
	return connect.NewError(connect.CodeInvalidArgument, errors.New("the body is no such JSON: "+readable(err.Error())))
}
