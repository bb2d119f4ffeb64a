package rest

import (
	"connectrpc.com/vanguard"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/rpcerror"
	"switchyard/workflows/structs"
)

// codec is the JSON codec of REST. It prints zero values and rejects unknown fields.
type codec struct {
	vanguard.JSONCodec
	printer *printer
}

var _ vanguard.RESTCodec = codec{}

// codecs returns a factory of codecs that share one printer.
func codecs() func(vanguard.TypeResolver) vanguard.Codec {
	shared := &printer{}
	return func(types vanguard.TypeResolver) vanguard.Codec {
		return codec{vanguard.JSONCodec{
			MarshalOptions:   protojson.MarshalOptions{Resolver: types, EmitDefaultValues: true},
			UnmarshalOptions: protojson.UnmarshalOptions{Resolver: types},
		}, shared}
	}
}

// MarshalAppend appends the JSON of a response.
func (c codec) MarshalAppend(b []byte, m proto.Message) ([]byte, error) {
	return c.printer.appendMessage(b, m.ProtoReflect())
}

// MarshalAppendField appends the JSON of a response that is a single field of the message.
func (c codec) MarshalAppendField(b []byte, m proto.Message, field protoreflect.FieldDescriptor) ([]byte, error) {
	return c.printer.appendField(b, field, m.ProtoReflect().Get(field))
}

// Unmarshal decodes a body. It rejects data that would change. Every error is an InvalidArgument.
func (c codec) Unmarshal(data []byte, m proto.Message) error {
	if err := structs.CheckJSON(data); err != nil {
		return malformed(data, m, err)
	}
	return malformed(data, m, c.JSONCodec.Unmarshal(data, m))
}

// UnmarshalField decodes a body that is a single field of the request.
func (c codec) UnmarshalField(data []byte, m proto.Message, field protoreflect.FieldDescriptor) error {
	if field.Message() != nil && !field.IsList() && !field.IsMap() {
		return c.Unmarshal(data, m.ProtoReflect().Mutable(field).Message().Interface())
	}
	return malformed(data, m, c.JSONCodec.UnmarshalField(data, m, field))
}

// malformed returns the error for a body that cannot be decoded, or nil if err is nil.
func malformed(data []byte, m proto.Message, err error) error {
	if err == nil {
		return nil
	}
	return rpcerror.Invalid("%s", rpcerror.Malformed(data, m, err))
}
