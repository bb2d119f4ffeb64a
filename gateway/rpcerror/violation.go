package rpcerror

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/workflows/nearest"
)

// maxShown limits the bytes of a wrong value that an error repeats.
const maxShown = 80

// violations is an error of the rules of a message in the words of callers.
type violations struct{ *protovalidate.ValidationError }

// ExplainRules returns an error of protovalidate in words that name the field as in JSON, its value and the values that it may have.
// Any other error is returned unchanged.
func ExplainRules(err error) error {
	if invalid, ok := errors.AsType[*protovalidate.ValidationError](err); ok {
		return violations{invalid}
	}
	return err
}

// Error returns the violations, separated by semicolons.
func (v violations) Error() string {
	texts := make([]string, len(v.Violations))
	for i, violation := range v.Violations {
		texts[i] = describe(violation)
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the error of protovalidate, which is the detail of the answer.
func (v violations) Unwrap() error { return v.ValidationError }

func describe(v *protovalidate.Violation) string {
	name, value := jsonPath(v.Proto.GetField()), ""
	if v.FieldValue.IsValid() {
		value = fmt.Sprint(v.FieldValue.Interface())
		if v.FieldDescriptor != nil && v.FieldDescriptor.Kind() == protoreflect.StringKind {
			value = fmt.Sprintf("%.*q", maxShown, value)
		}
	}
	switch id := v.Proto.GetRuleId(); {
	case v.Proto.GetForKey() || v.FieldDescriptor == nil:
	case id == "required", id == "string.min_len" && value == `""`:
		return name + " is missing"
	case id == "string.in":
		return describeWord(name, v)
	default:
		if wanted := rangeOf(v.FieldDescriptor); wanted != "" {
			return name + " is " + value + "; it must be " + wanted
		}
	}
	return strings.TrimPrefix(name+": ", ": ") + v.Proto.GetMessage()
}

// describeWord returns the text about a word that is not one of the allowed ones. An allowed "" stands for an absent word.
func describeWord(name string, v *protovalidate.Violation) string {
	var words []string
	for i := range v.RuleValue.List().Len() {
		if word := v.RuleValue.List().Get(i).String(); word != "" {
			words = append(words, word)
		}
	}
	word := v.FieldValue.String()
	text := fmt.Sprintf("%s is %.*q", name, maxShown, word)
	if word == "" {
		text = name + " is missing"
	}
	text += "; it must be " + words[0]
	if last := len(words) - 1; last > 0 {
		text = strings.TrimSuffix(text, words[0]) + strings.Join(words[:last], ", ") + " or " + words[last]
	}
	if hint := nearest.DidYouMean(word, words); hint != "" {
		text += "; " + hint
	}
	return text
}

// rangeOf returns the bounds of a number, or "" if it has none.
func rangeOf(field protoreflect.FieldDescriptor) string {
	rules, err := protovalidate.ResolveFieldRules(field)
	if err != nil || rules == nil {
		return ""
	}
	kind := rules.ProtoReflect().WhichOneof(rules.ProtoReflect().Descriptor().Oneofs().ByName("type"))
	if kind == nil || !slices.Contains([]protoreflect.Kind{protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Uint32Kind, protoreflect.DoubleKind}, field.Kind()) {
		return ""
	}
	numbers := rules.ProtoReflect().Get(kind).Message()
	bound := func(name protoreflect.Name) string {
		if of := numbers.Descriptor().Fields().ByName(name); of != nil && numbers.Has(of) {
			return fmt.Sprint(numbers.Get(of).Interface())
		}
		return ""
	}
	switch low, above, high := bound("gte"), bound("gt"), bound("lte"); {
	case above != "" && high != "":
		return "above " + above + " and at most " + high
	case low != "" && high != "":
		return low + " to " + high
	case low != "":
		return low + " or more"
	case high != "":
		return "at most " + high
	}
	return ""
}

// jsonPath returns the path of a field with the names that JSON has for its parts.
func jsonPath(path *validate.FieldPath) string {
	var b strings.Builder
	for _, element := range path.GetElements() {
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		for i, part := range strings.Split(element.GetFieldName(), "_") {
			if i > 0 && part != "" {
				part = strings.ToUpper(part[:1]) + part[1:]
			}
			b.WriteString(part)
		}
		switch subscript := element.GetSubscript().(type) {
		case *validate.FieldPathElement_Index:
			fmt.Fprintf(&b, "[%d]", subscript.Index)
		case *validate.FieldPathElement_StringKey:
			fmt.Fprintf(&b, "[%q]", subscript.StringKey)
		}
	}
	return b.String()
}
