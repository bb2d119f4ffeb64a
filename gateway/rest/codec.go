package rest

import (
	"regexp"
	"slices"
	"strings"

	"connectrpc.com/vanguard"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/rpcerror"
	"switchyard/workflows/nearest"
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
		return malformed(m, err)
	}
	return malformed(m, c.JSONCodec.Unmarshal(data, m))
}

// UnmarshalField decodes a body that is a single field of the request.
func (c codec) UnmarshalField(data []byte, m proto.Message, field protoreflect.FieldDescriptor) error {
	if field.Message() != nil && !field.IsList() && !field.IsMap() {
		return c.Unmarshal(data, m.ProtoReflect().Mutable(field).Message().Interface())
	}
	return malformed(m, c.JSONCodec.UnmarshalField(data, m, field))
}

// The formats in which protojson reports a position and an unknown field.
var (
	placeText   = regexp.MustCompile(`^(?:syntax error )?\(line (\d+):(\d+)\): `)
	unknownText = regexp.MustCompile(`^unknown field "(.*)"$`)
)

// malformed returns the error for a body that cannot be decoded, or nil if err is nil.
func malformed(m proto.Message, err error) error {
	if err == nil {
		return nil
	}
	place, text := "the body", readable(err.Error())
	if at := placeText.FindStringSubmatch(text); at != nil {
		place, text = "line "+at[1]+", column "+at[2]+" of the body", text[len(at[0]):]
	}
	if unknown := unknownText.FindStringSubmatch(text); unknown != nil {
		if hint := nearest.DidYouMean(unknown[1], fieldNames(m.ProtoReflect().Descriptor())); hint != "" {
			text += "; " + hint
		}
	}
	return rpcerror.Invalid("%s: %s", place, text)
}

// fieldNames returns the field names of a message and of all nested messages, outer ones first.
func fieldNames(message protoreflect.MessageDescriptor) (names []string) {
	seen := map[protoreflect.FullName]bool{message.FullName(): true}
	for queue := []protoreflect.MessageDescriptor{message}; len(queue) > 0; queue = queue[1:] {
		fields := queue[0].Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			if name := field.JSONName(); !slices.Contains(names, name) {
				names = append(names, name)
			}
			if below := field.Message(); below != nil && !seen[below.FullName()] && !strings.HasPrefix(string(below.FullName()), "google.protobuf.") {
				seen[below.FullName()] = true
				queue = append(queue, below)
			}
		}
	}
	return names
}
