package gateway

import (
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// requestValidator checks the rules of requests. It skips definitions and their parts, for which workflows/definition has better
// messages.
type requestValidator struct{ protovalidate.Validator }

// Validate checks m against its rules, except inside definitions.
func (v requestValidator) Validate(m proto.Message, options ...protovalidate.ValidationOption) error {
	return rpcerror.ExplainRules(v.Validator.Validate(m, append(options, protovalidate.WithFilter(outsideDefinitions{}))...))
}

type outsideDefinitions struct{}

// ShouldValidate reports whether a field lies outside definitions.
func (outsideDefinitions) ShouldValidate(_ protoreflect.Message, d protoreflect.Descriptor) bool {
	field, ok := d.(protoreflect.FieldDescriptor)
	if !ok || field.Message() == nil {
		return true
	}
	file := field.Message().ParentFile()
	return file != v1.File_switchyard_v1_definition_proto && file != v1.File_switchyard_v1_spec_proto
}
