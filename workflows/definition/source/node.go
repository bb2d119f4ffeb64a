package source

import (
	"iter"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/structs"
)

// Kind is the kind of a value in a document.
type Kind int

// These are the kinds of values.
const (
	Null Kind = iota
	Boolean
	Number
	Str
	Sequence
	Mapping
)

// Style is how a scalar is written. It determines how positions inside the scalar map to the document.
type Style int

const (
	plain Style = iota
	singleQuoted
	doubleQuoted
	jsonQuoted
	literal
	folded
	// FromMessage marks values from a message. The original text of such a value is unknown.
	FromMessage
)

// Node is a value of a document, the same for YAML and JSON.
type Node struct {
	Kind    Kind
	Style   Style
	At      Position
	Text    string  // value of a string; for other scalars their text in the document
	Value   float64 // value of a number
	Decimal string  // value of a number as written, in decimal; empty for one from a message
	Truth   bool    // value of a boolean
	Entries []Entry // entries of a mapping, without duplicates
	Items   []*Node // items of a sequence
}

// Entry is a key of a mapping with its value.
type Entry struct {
	Key   string
	At    Position // of the key
	Value *Node
}

// String describes the value for messages: a list, the number 5, the string "x".
func (n *Node) String() string {
	switch n.Kind {
	case Null:
		return "empty"
	case Boolean:
		return n.Text
	case Number:
		return "the number " + n.Text
	case Str:
		return "the string " + Quote(n.Text)
	case Sequence:
		return "a list"
	}
	return "a mapping"
}

// ScalarText returns a scalar as text. Numbers and booleans of a document count as their written text, so that `command: true`
// and `dependsOn: [1]` mean what they look like. Those of a message do not count, because a message cannot distinguish "1.0"
// from "1".
func (n *Node) ScalarText() (string, bool) {
	switch n.Kind {
	case Str:
		return n.Text, true
	case Number, Boolean:
		return n.Text, n.Style != FromMessage
	}
	return "", false
}

// StructNode returns the tree of a message's struct, or nil if there is none.
func StructNode(s *structpb.Struct) *Node {
	if s == nil {
		return nil
	}
	return ValueNode(structpb.NewStructValue(s))
}

// ValueNode returns the tree of a message's value.
func ValueNode(v *structpb.Value) *Node {
	n := &Node{Style: FromMessage}
	switch v := v.GetKind().(type) {
	case *structpb.Value_BoolValue:
		n.Kind, n.Truth, n.Text = Boolean, v.BoolValue, strconv.FormatBool(v.BoolValue)
	case *structpb.Value_NumberValue:
		n.Kind, n.Value, n.Text = Number, v.NumberValue, structs.Number(v.NumberValue)
	case *structpb.Value_StringValue:
		n.Kind, n.Text = Str, v.StringValue
	case *structpb.Value_ListValue:
		n.Kind = Sequence
		for _, item := range v.ListValue.GetValues() {
			n.Items = append(n.Items, ValueNode(item))
		}
	case *structpb.Value_StructValue:
		n.Kind = Mapping
		fields := v.StructValue.GetFields()
		//workflowcheck:ignore (the keys are sorted)
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			n.Entries = append(n.Entries, Entry{Key: key, Value: ValueNode(fields[key])})
		}
	}
	return n
}

// Scalars yields the scalars in a value in the order of the document, each with its path. p is the path of the value.
func (n *Node) Scalars(p *Path) iter.Seq2[*Path, *Node] {
	return func(yield func(*Path, *Node) bool) { n.yieldScalars(p, yield) }
}

func (n *Node) yieldScalars(p *Path, yield func(*Path, *Node) bool) bool {
	for i, item := range n.Items {
		if !item.yieldScalars(p.Item(i), yield) {
			return false
		}
	}
	for _, e := range n.Entries {
		if !e.Value.yieldScalars(p.Key(e.Key), yield) {
			return false
		}
	}
	return n.Kind == Sequence || n.Kind == Mapping || yield(p, n)
}
