package definition

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/definition/source"
)

// maxInline is the deepest nesting of inline definitions.
const maxInline = 8

// inline decodes and checks the definition in the spec of a task of type run, and returns it in canonical form. It is a
// definition like any other and sees nothing of the enclosing one.
func (d *document) inline(n *source.Node, p *source.Path) (*structpb.Struct, bool) {
	if d.depth >= maxInline {
		d.Fail(n.At, p, fmt.Sprintf("definitions are nested more than %d deep", maxInline), "store the inner ones and refer to them with workflow")
		return nil, false
	}
	if n.Kind != source.Mapping {
		d.Fail(n.At, p, p.Local()+" is "+n.String()+"; it must be a definition, a mapping with name and tasks", "to name a stored definition, use spec.workflow")
		return nil, false
	}
	inner := newDocument(&decoder{Report: d.Report, base: p.Inline(), depth: d.depth + 1, places: d.places}, d.stored)
	inner.inner = d.inner
	def, specs := inner.read(n)
	inner.check(def, specs)
	d.inner[p.Parent.String()] = def
	canonical := &structpb.Struct{}
	data, err := protojson.Marshal(def)
	if err == nil {
		err = protojson.Unmarshal(data, canonical)
	}
	return canonical, err == nil // what cannot be written has already been reported
}
