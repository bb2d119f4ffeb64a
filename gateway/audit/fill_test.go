package audit

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// filled is a message with text in each string field.
type filled = dynamicpb.Message

func fill(message protoreflect.MessageDescriptor) *filled {
	m := dynamicpb.NewMessage(message)
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		switch {
		case field.IsList(), field.IsMap():
		case field.Kind() == protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString("x"))
		case field.Kind() == protoreflect.MessageKind && slices.Contains(subjects, field.Message().FullName()):
			m.Set(field, protoreflect.ValueOfMessage(fill(field.Message())))
		}
	}
	return m
}
