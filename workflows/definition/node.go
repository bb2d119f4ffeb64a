package definition

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"
)

// kind is what a value of a document is.
type kind int

const (
	null kind = iota
	boolean
	number
	str
	sequence
	mapping
)

// style is how a scalar is written; it decides how places inside it map to the document.
type style int

const (
	plain style = iota
	singleQuoted
	doubleQuoted
	jsonQuoted
	literal
	folded
	// fromMessage marks values that come from a message and not from a
	// document. What their text looked like is not known.
	fromMessage
)

// node is a value of a document, the same for YAML and JSON.
type node struct {
	kind    kind
	style   style
	at      position
	text    string  // of a string its value, of other scalars their text in the document
	value   float64 // of a number
	whole   bool    // the number is written as an integer
	truth   bool    // of a boolean
	entries []entry // of a mapping, without duplicates
	items   []*node // of a sequence
}

// entry is a key of a mapping and its value.
type entry struct {
	key   string
	at    position // of the key
	value *node
}

// String says what the value is, for messages: a list, the number 5, the string "x".
func (n *node) String() string {
	switch n.kind {
	case null:
		return "empty"
	case boolean:
		return n.text
	case number:
		return "the number " + n.text
	case str:
		return "the string " + quote(n.text)
	case sequence:
		return "a list"
	}
	return "a mapping"
}

// scalarText returns a scalar as text. Numbers and booleans of a document count
// as what was written, so that `command: true` and `dependsOn: [1]` mean what
// they look like; in a message they do not, because "1.0" and "1" are the same there.
func (n *node) scalarText() (string, bool) {
	switch n.kind {
	case str:
		return n.text, true
	case number, boolean:
		return n.text, n.style != fromMessage
	}
	return "", false
}

// structNode is the tree of a struct of a message.
func structNode(s *structpb.Struct) *node {
	if s == nil {
		return nil
	}
	return valueNode(structpb.NewStructValue(s))
}

func valueNode(v *structpb.Value) *node {
	n := &node{style: fromMessage}
	switch v := v.GetKind().(type) {
	case *structpb.Value_BoolValue:
		n.kind, n.truth, n.text = boolean, v.BoolValue, strconv.FormatBool(v.BoolValue)
	case *structpb.Value_NumberValue:
		n.kind, n.value, n.text = number, v.NumberValue, strconv.FormatFloat(v.NumberValue, 'g', -1, 64)
		n.whole = v.NumberValue == math.Trunc(v.NumberValue)
	case *structpb.Value_StringValue:
		n.kind, n.text = str, v.StringValue
	case *structpb.Value_ListValue:
		n.kind = sequence
		for _, item := range v.ListValue.GetValues() {
			n.items = append(n.items, valueNode(item))
		}
	case *structpb.Value_StructValue:
		n.kind = mapping
		fields := v.StructValue.GetFields()
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			n.entries = append(n.entries, entry{key: key, value: valueNode(fields[key])})
		}
	}
	return n
}
