package definition

import (
	"cmp"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

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
