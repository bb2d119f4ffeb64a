package definition

import (
	"fmt"
	"slices"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/workflows/structs"
)

// fieldRules are the rules of the model for one field, limited to the kinds that the model uses. Messages and the JSON Schema
// both show them.
type fieldRules struct {
	required   bool
	minLen     uint64
	maxLen     uint64
	pattern    string
	in         []string // without the empty text, which means the default
	optional   bool     // an empty or missing text is allowed
	gte, lte   *float64
	minPairs   uint64
	minItems   uint64
	maxItems   uint64
	keyPattern string
}

func rulesOf(field protoreflect.FieldDescriptor) fieldRules {
	rules, err := protovalidate.ResolveFieldRules(field)
	if err != nil || rules == nil {
		return fieldRules{}
	}
	f := fieldRules{required: rules.GetRequired()}
	switch {
	case rules.GetString() != nil:
		s := rules.GetString()
		f.minLen, f.maxLen, f.pattern = s.GetMinLen(), s.GetMaxLen(), s.GetPattern()
		f.optional = slices.Contains(s.GetIn(), "") || rules.GetIgnore() == validate.Ignore_IGNORE_IF_ZERO_VALUE
		f.in = slices.DeleteFunc(slices.Clone(s.GetIn()), func(word string) bool { return word == "" })
	case rules.GetRepeated() != nil:
		f.minItems, f.maxItems = rules.GetRepeated().GetMinItems(), rules.GetRepeated().GetMaxItems()
	case rules.GetMap() != nil:
		f.minPairs = rules.GetMap().GetMinPairs()
		f.keyPattern = rules.GetMap().GetKeys().GetString().GetPattern()
	case rules.GetInt32() != nil:
		f.gte, f.lte = bounds(rules.GetInt32())
	case rules.GetDouble() != nil:
		f.gte, f.lte = bounds(rules.GetDouble())
	}
	return f
}

// bounds returns the inclusive bounds of a number's rules; the model uses no others.
func bounds[R interface {
	*validate.Int32Rules | *validate.DoubleRules
	ProtoReflect() protoreflect.Message
}](rules R) (gte, lte *float64) {
	get := func(name protoreflect.Name) *float64 {
		m := rules.ProtoReflect()
		field := m.Descriptor().Fields().ByName(name)
		if !m.Has(field) {
			return nil
		}
		value := m.Get(field)
		bound := 0.0
		if field.Kind() == protoreflect.Int32Kind {
			bound = float64(value.Int())
		} else {
			bound = value.Float()
		}
		return &bound
	}
	return get("gte"), get("lte")
}

// wants returns the rules in words that follow "it must be".
func (f fieldRules) wants() string {
	switch {
	case f.gte != nil && f.lte != nil:
		return structs.Number(*f.gte) + " to " + structs.Number(*f.lte)
	case f.gte != nil:
		return structs.Number(*f.gte) + " or more"
	case f.lte != nil:
		return "at most " + structs.Number(*f.lte)
	case len(f.in) > 0:
		return alternatives(f.in)
	case f.maxLen > 0:
		return fmt.Sprintf("at most %d characters long", f.maxLen)
	}
	return ""
}

// alternatives formats words as "a, b or c".
func alternatives(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
