package audit

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// filled is a message with a text in each field that is one.
type filled = dynamicpb.Message

func fill(message protoreflect.MessageDescriptor) *filled {
	m := dynamicpb.NewMessage(message)
	for i := range message.Fields().Len() {
		if field := message.Fields().Get(i); field.Kind() == protoreflect.StringKind && !field.IsList() && !field.IsMap() {
			m.Set(field, protoreflect.ValueOfString("x"))
		}
	}
	return m
}
