package definition

import (
	"slices"

	"switchyard/workflows/definition/source"
)

// decoder is what the parts of a definition share while they are read and checked: the problems found so far, and the place of
// every value in the document. Each part has its own type, which embeds the decoder.
type decoder struct {
	*source.Report
	base   *source.Path     // start of the definition: the root, or the spec that contains it inline
	depth  int              // number of enclosing definitions
	places map[string]place // by path; nil for a definition that came as a message
}

// place is the position of a field or a map entry in the document.
type place struct {
	key   source.Position
	value *source.Node
}

// locate returns the position of the value at p, also inside free-form data, or that of the closest enclosing place that has one.
func (d *decoder) locate(p *source.Path) source.Position {
	if n := d.nodeAt(p); n != nil && n.Kind != source.Null {
		return n.At
	}
	return d.locateKey(p)
}

// nodeAt returns the value at p in the document, including free-form data, or nil if there is none.
func (d *decoder) nodeAt(p *source.Path) *source.Node {
	if found, ok := d.places[p.String()]; ok {
		return found.value
	}
	if p == nil {
		return nil
	}
	around := d.nodeAt(p.Parent)
	switch {
	case around == nil:
	case p.Index >= 0 && p.Index < len(around.Items):
		return around.Items[p.Index]
	case p.Index < 0:
		for _, e := range around.Entries {
			if e.Key == p.Name {
				return e.Value
			}
		}
	}
	return nil
}

// locateKey returns the position of the key of p, also inside free-form data, or that of the closest enclosing key.
func (d *decoder) locateKey(p *source.Path) source.Position {
	for ; p != nil; p = p.Parent {
		if found, ok := d.places[p.String()]; ok {
			return found.key
		}
		if around := d.nodeAt(p.Parent); around != nil {
			if i := slices.IndexFunc(around.Entries, func(e source.Entry) bool { return e.Key == p.Name }); i >= 0 {
				return around.Entries[i].At
			}
		}
	}
	return d.places[p.String()].key
}

// setPlace records the place of the value at p. It is a no-op for a definition that came as a message.
func (d *decoder) setPlace(p *source.Path, at place) {
	if d.places != nil {
		d.places[p.String()] = at
	}
}

// hasValue reports whether the document has a value for p, even a zero one.
func (d *decoder) hasValue(p *source.Path) bool {
	found, ok := d.places[p.String()]
	return ok && found.value.Kind != source.Null
}

// copyPlace sets the place of an inherited value to that of the default.
func (d *decoder) copyPlace(from, p *source.Path) {
	if found, ok := d.places[from.String()]; ok {
		d.places[p.String()] = found
	}
}

// locateInText returns the position in the document of a byte of a text.
func (d *decoder) locateInText(text string, offset int, p *source.Path) source.Position {
	n := d.nodeAt(p)
	if n == nil {
		return d.locate(p)
	}
	if inside, ok := d.Lines.Inside(n, source.OffsetOf(text, offset)); ok {
		return inside
	}
	return n.At
}
