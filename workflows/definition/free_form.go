package definition

import (
	"cmp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/structs"
)

// freeStruct decodes a mapping of free-form data.
func (d *decoder) freeStruct(n *source.Node, p *source.Path) (*structpb.Struct, bool) {
	if n.Kind != source.Mapping {
		d.Fail(n.At, p, p.Local()+" is "+n.String()+"; it must be a mapping", "")
		return nil, false
	}
	v, ok := d.freeValue(n, p)
	return v.GetStructValue(), ok
}

// freeValue decodes free-form data. It reports a number that would change.
func (d *decoder) freeValue(n *source.Node, p *source.Path) (*structpb.Value, bool) {
	switch n.Kind {
	case source.Boolean:
		return structpb.NewBoolValue(n.Truth), true
	case source.Number:
		if reason := structs.CheckNumber(cmp.Or(n.Decimal, n.Text)); reason != "" {
			message, hint, _ := strings.Cut(reason, "; ")
			d.Fail(n.At, p, message, hint)
			return structpb.NewNullValue(), false
		}
		return structpb.NewNumberValue(n.Value), true
	case source.Str:
		return structpb.NewStringValue(n.Text), true
	case source.Sequence:
		list, ok := &structpb.ListValue{}, true
		for i, item := range n.Items {
			v, good := d.freeValue(item, p.Item(i))
			list.Values = append(list.Values, v)
			ok = ok && good
		}
		return structpb.NewListValue(list), ok
	case source.Mapping:
		s, ok := &structpb.Struct{Fields: map[string]*structpb.Value{}}, true
		for _, e := range n.Entries {
			v, good := d.freeValue(e.Value, p.Key(e.Key))
			s.Fields[e.Key] = v
			ok = ok && good
		}
		return structpb.NewStructValue(s), ok
	}
	return structpb.NewNullValue(), true
}

// warnOfField calls warnOfTexts for the fields whose values tasks read as texts.
func (d *decoder) warnOfField(n *source.Node, field protoreflect.FieldDescriptor, p *source.Path) {
	switch field.Name() {
	case "context", "input", "matrix", "foreach":
		d.warnOfTexts(n, p)
	}
}

// warnOfInput calls warnOfTexts unless the type of an input says what its texts mean. in is nil if the input is not declared.
func (d *decoder) warnOfInput(in *v1.InputDefinition, n *source.Node, p *source.Path) {
	if kind := inputType(in); in == nil || kind == "list" || kind == "object" {
		d.warnOfTexts(n, p)
	}
}

// warnOfTexts warns about scalars of a document that tasks do not find as they are written: a version such as 3.10 is a number.
func (d *decoder) warnOfTexts(n *source.Node, p *source.Path) {
	for at, scalar := range n.Scalars(p) {
		text := ""
		switch scalar.Kind {
		case source.Number:
			text = condition.Text(structpb.NewNumberValue(scalar.Value))
		case source.Boolean:
			text = strconv.FormatBool(scalar.Truth)
		}
		if text != "" && text != scalar.Text && scalar.Style != source.FromMessage {
			d.Warn(scalar.At, at, at.Local()+" is "+scalar.String()+", which tasks find as "+text, "write "+strconv.Quote(scalar.Text)+", in quotes, to keep the text")
		}
	}
}
