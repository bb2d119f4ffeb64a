package prototest

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxDepth is the depth to which nested messages are filled. Some message types contain themselves.
const maxDepth = 3

// Fill sets every field of a message and of its nested messages to a value other than the zero value. Of a oneof,
// the last field remains set.
func Fill(m proto.Message) { fill(m.ProtoReflect(), 0) }

func fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		switch f := fields.Get(i); {
		case f.IsMap():
			values := m.Mutable(f).Map()
			value := values.NewValue()
			if f.MapValue().Message() != nil {
				if depth == maxDepth {
					continue
				}
				fill(value.Message(), depth+1)
			} else {
				value = scalar(f.MapValue())
			}
			values.Set(scalar(f.MapKey()).MapKey(), value)
		case f.Message() != nil && depth == maxDepth:
		case f.IsList() && f.Message() != nil:
			fill(m.Mutable(f).List().AppendMutable().Message(), depth+1)
		case f.IsList():
			m.Mutable(f).List().Append(scalar(f))
		case f.Message() != nil:
			fill(m.Mutable(f).Message(), depth+1)
		default:
			m.Set(f, scalar(f))
		}
	}
}

func scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(string(f.Name()))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(f.Name()))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(f.Enum().Values().Get(f.Enum().Values().Len() - 1).Number())
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(f.Number()))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(f.Number()))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(f.Number()))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(f.Number()))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(f.Number()))
	default:
		return protoreflect.ValueOfInt32(int32(f.Number()))
	}
}

// Missing returns the names of the fields that are not set in a message, except the fields in but.
func Missing(m proto.Message, but ...string) []string {
	var missing []string
	fields := m.ProtoReflect().Descriptor().Fields()
next:
	for i := range fields.Len() {
		f := fields.Get(i)
		for _, name := range but {
			if name == string(f.Name()) {
				continue next
			}
		}
		if !m.ProtoReflect().Has(f) {
			missing = append(missing, string(f.Name()))
		}
	}
	return missing
}
