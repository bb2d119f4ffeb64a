package definition

import (
	"fmt"
	"slices"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/workflows/nearest"
	"switchyard/workflows/structs"
)

// fieldRules are the rules of the model for one field, limited to the kinds that the model uses. Messages and the JSON Schema
// both show them.
type fieldRules struct {
	required   bool
	minLen     uint64
	maxLen     uint64
	pattern    string
	in         []string // without the empty text, which means the default; of a list, for its items
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
		f.in = rules.GetRepeated().GetItems().GetString().GetIn()
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
func bounds[N int32 | float64](rules interface {
	HasGte() bool
	GetGte() N
	HasLte() bool
	GetLte() N
}) (gte, lte *float64) {
	if rules.HasGte() {
		gte = new(float64(rules.GetGte()))
	}
	if rules.HasLte() {
		lte = new(float64(rules.GetLte()))
	}
	return gte, lte
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
		return nearest.Alternatives(f.in)
	case f.maxLen > 0:
		return fmt.Sprintf("at most %d characters long", f.maxLen)
	}
	return ""
}
