package definition

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/nearest"
)

// unknownFields reports keys that a message does not have.
type unknownFields struct {
	*decoder
	meant []*source.Path // fields named by hints, not settled yet
}

// report reports a key of n, at p, that its message does not have, with a hint at what was probably meant.
func (u *unknownFields) report(e source.Entry, n *source.Node, message protoreflect.MessageDescriptor, p *source.Path) {
	if u.IsFull() {
		u.Dropped++
		return
	}
	hint := u.hint(e, n, message, p)
	u.Add(e.At, p.Key(e.Key), "unknown field "+source.Quote(e.Key), hint)
}

// hint returns the hint for an unknown field. It looks for a name of other systems, then for a similar name, then for the
// same name in another place.
func (u *unknownFields) hint(e source.Entry, n *source.Node, message protoreflect.MessageDescriptor, p *source.Path) string {
	name := e.Key
	if use := u.alias(e, n, message, p); use != "" {
		u.recordMeant(extend(p, use), n, message, p)
		return "did you mean " + use + "?"
	}
	names := fieldNames(message)
	near := nearest.Word(name, names)
	if near == "" || nearest.Fold(near) != nearest.Fold(name) {
		if hint := u.belongs(name, n, message, p); hint != "" {
			return hint
		}
	}
	if near != "" {
		u.recordMeant(p.Field(near), n, message, p)
		return "did you mean " + near + "?"
	}
	if p.Task() != nil && message.FullName() == "switchyard.v1.TaskDefinition" {
		for _, home := range u.homes(n, message, p)[1:] {
			if near := nearest.Word(name, fieldNames(home.message)); near != "" {
				u.recordMeant(extend(p, home.below+"."+near), n, message, p)
				return "did you mean " + home.below + "." + near + "?"
			}
		}
	}
	return "known fields: " + strings.Join(names, ", ")
}

// alias returns the field for which other systems use the key of e, as a path within message, or "" if no field fits. Unlike the
// function, it looks at the value and at the type of the task.
func (u *unknownFields) alias(e source.Entry, n *source.Node, message protoreflect.MessageDescriptor, p *source.Path) string {
	use := alias(e.Key, message)
	if use == "spec.command" && nearest.Fold(e.Key) == shellField && namesInterpreter(e.Value) {
		use = "spec." + shellField
	}
	field, inSpec := strings.CutPrefix(use, "spec.")
	if !inSpec || message.FullName() != "switchyard.v1.TaskDefinition" {
		return use
	}
	if spec := newSpec(u.taskType(n, message, nil)); spec != nil && fieldLike(spec.ProtoReflect().Descriptor(), field) == "" {
		return "" // tasks of this type have no such field
	}
	return use
}

// recordMeant records the field that a hint names, because it would otherwise be reported as missing, too. n is the mapping at
// p that contains the key. A field that is also present keeps its own problems.
func (u *unknownFields) recordMeant(field *source.Path, n *source.Node, message protoreflect.MessageDescriptor, p *source.Path) {
	if u.places != nil {
		u.meant = append(u.meant, field) // it may come later in the document
		return
	}
	// For a definition that came as a message, n holds only the spec itself.
	found := message.Fields().ByJSONName(field.Name)
	if field.Parent.String() != p.String() || found == nil {
		return
	}
	if !slices.ContainsFunc(n.Entries, func(e source.Entry) bool { return e.Key == found.JSONName() || e.Key == string(found.Name()) }) {
		u.Settle(field)
	}
}

// settleMeant settles the fields named by hints that the document does not have. The document must have been read.
func (u *unknownFields) settleMeant() {
	for _, field := range u.meant {
		if _, there := u.places[field.String()]; !there {
			u.Settle(field)
		}
	}
	u.meant = nil
}

func fieldNames(message protoreflect.MessageDescriptor) []string {
	var names []string
	for i := range message.Fields().Len() {
		names = append(names, message.Fields().Get(i).JSONName())
	}
	return names
}

func extend(p *source.Path, fields string) *source.Path {
	for name := range strings.SplitSeq(fields, ".") {
		p = p.Field(name)
	}
	return p
}

// home is a part of a task that has fields of its own.
type home struct {
	message protoreflect.MessageDescriptor
	in      string // description for messages
	below   string // field of the task, or "" for the task itself
}

// homes returns the parts of a task, the task itself first. n is the mapping at p.
func (u *unknownFields) homes(n *source.Node, message protoreflect.MessageDescriptor, p *source.Path) []home {
	task := p.Task()
	homes := []home{
		{(&v1.TaskDefinition{}).ProtoReflect().Descriptor(), "the task itself", ""},
		{(&v1.Constraints{}).ProtoReflect().Descriptor(), "constraints", "constraints"},
		{(&v1.Resources{}).ProtoReflect().Descriptor(), "resources", "resources"},
		{(&v1.RetryPolicy{}).ProtoReflect().Descriptor(), "retry", "retry"},
	}
	if spec := newSpec(u.taskType(n, message, task)); spec != nil {
		homes = append(homes, home{spec.ProtoReflect().Descriptor(), "spec", "spec"})
	}
	return homes
}

// belongs returns a hint for a field that exists under the same name in another part of the definition, or "".
func (u *unknownFields) belongs(name string, n *source.Node, message protoreflect.MessageDescriptor, p *source.Path) string {
	task := p.Task()
	inTask := task != nil
	homes := u.homes(n, message, p)
	if !inTask {
		for i := range homes[1:] {
			homes[i+1].in += " of a task"
		}
		homes[0].in = "a task"
	}
	for _, home := range homes {
		field := fieldLike(home.message, name)
		if field == "" || home.message.FullName() == message.FullName() {
			continue
		}
		if inTask {
			at := task
			if home.below != "" {
				at = at.Field(home.below)
			}
			u.recordMeant(at.Field(field), n, message, p)
		}
		return field + " belongs in " + home.in
	}
	if field := fieldLike((&v1.Definition{}).ProtoReflect().Descriptor(), name); field != "" && inTask {
		return field + " belongs at the top of the document"
	}
	return ""
}

// taskType returns the type of the task that contains a field. While the task itself is being decoded, its type is only in the
// tree.
func (u *unknownFields) taskType(n *source.Node, message protoreflect.MessageDescriptor, task *source.Path) string {
	if message.FullName() != "switchyard.v1.TaskDefinition" {
		n = u.places[task.Field("type").String()].value
		if n == nil {
			return ""
		}
		return n.Text
	}
	for _, e := range n.Entries {
		if e.Key == "type" {
			return e.Value.Text
		}
	}
	return v1.TypeShell
}

// fieldLike returns the field of a message whose name equals name apart from case and separators, or "".
func fieldLike(message protoreflect.MessageDescriptor, name string) string {
	for i := range message.Fields().Len() {
		if field := message.Fields().Get(i).JSONName(); nearest.Fold(field) == nearest.Fold(name) {
			return field
		}
	}
	return ""
}
