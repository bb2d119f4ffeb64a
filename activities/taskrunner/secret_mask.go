package taskrunner

import (
	"errors"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"
)

// maskError returns an error with the values of secrets masked in its text.
func (s *secretEnv) maskError(err error) error {
	if err == nil || s.masks.Text(err.Error()) == err.Error() {
		return err
	}
	return errors.New(s.masks.Text(err.Error()))
}

// maskStruct masks the values of secrets in a task's output, including names and numbers.
func (s *secretEnv) maskStruct(of *structpb.Struct) *structpb.Struct {
	if s.masks == nil || of == nil {
		return of
	}
	return s.maskValue(structpb.NewStructValue(of)).GetStructValue()
}

func (s *secretEnv) maskValue(v *structpb.Value) *structpb.Value {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return structpb.NewStringValue(s.masks.Text(kind.StringValue))
	case *structpb.Value_NumberValue:
		text := strconv.FormatFloat(kind.NumberValue, 'f', -1, 64)
		if masked := s.masks.Text(text); masked != text {
			return structpb.NewStringValue(masked)
		}
	case *structpb.Value_ListValue:
		list := &structpb.ListValue{}
		for _, item := range kind.ListValue.GetValues() {
			list.Values = append(list.Values, s.maskValue(item))
		}
		return structpb.NewListValue(list)
	case *structpb.Value_StructValue:
		fields := make(map[string]*structpb.Value, len(kind.StructValue.GetFields()))
		for name, value := range kind.StructValue.GetFields() {
			fields[s.masks.Text(name)] = s.maskValue(value)
		}
		return structpb.NewStructValue(&structpb.Struct{Fields: fields})
	}
	return v
}
