package structs

import "google.golang.org/protobuf/types/known/structpb"

// Bytes returns an upper estimate of the size of an object as JSON.
func Bytes(s *structpb.Struct) int {
	n := 2
	//workflowcheck:ignore (a sum does not depend on the order)
	for name, value := range s.GetFields() {
		n += TextBytes(name) + ValueBytes(value) + 2
	}
	return n
}

// ValueBytes returns an upper estimate of the size of a value as JSON.
func ValueBytes(v *structpb.Value) int {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return TextBytes(kind.StringValue)
	case *structpb.Value_StructValue:
		return Bytes(kind.StructValue)
	case *structpb.Value_ListValue:
		n := 2
		for _, item := range kind.ListValue.GetValues() {
			n += ValueBytes(item) + 1
		}
		return n
	case *structpb.Value_NumberValue:
		return 24 // the longest JSON form of a float64
	}
	return 5 // false
}

// TextBytes returns an upper estimate of the size of a string as JSON.
func TextBytes(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c == 0x7f:
			n += 5
		case c == '"' || c == '\\':
			n++
		}
	}
	return n
}
