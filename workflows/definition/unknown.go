package definition

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
)

// unknownField reports a key of n, at p, that its message does not have, and
// says what was probably meant.
func (d *decoder) unknownField(e entry, n *node, message protoreflect.MessageDescriptor, p *path) {
	if d.full() {
		d.lost++
		return
	}
	hint := d.fieldHint(e.key, n, message, p)
	d.add(e.at, p.key(e.key), "unknown field "+quote(e.key), hint)
}

// fieldHint looks for a field as other systems call it, then for one with a
// similar name, then for the same name in another place.
func (d *decoder) fieldHint(name string, n *node, message protoreflect.MessageDescriptor, p *path) string {
	if use := alias(name, message); use != "" {
		d.mean(extend(p, use), n, message, p)
		return "did you mean " + use + "?"
	}
	names := fieldNames(message)
	near := Nearest(name, names)
	if near != "" && squash(near) == squash(name) {
		d.mean(p.field(near), n, message, p)
		return "did you mean " + near + "?"
	}
	if hint := d.belongs(name, n, message, p); hint != "" {
		return hint
	}
	if near != "" {
		d.mean(p.field(near), n, message, p)
		return "did you mean " + near + "?"
	}
	if _, inTask := p.task(); inTask && message.FullName() == "switchyard.v1.TaskDefinition" {
		for _, home := range d.homes(n, message, p)[1:] {
			if near := Nearest(name, fieldNames(home.message)); near != "" {
				d.mean(extend(p, home.below+"."+near), n, message, p)
				return "did you mean " + home.below + "." + near + "?"
			}
		}
	}
	return "known fields: " + strings.Join(names, ", ")
}

// mean notes the field that a hint names, which would be reported as missing
// too; n is the mapping at p in which the key is. A field that is there as well
// keeps its own problems.
func (d *decoder) mean(field *path, n *node, message protoreflect.MessageDescriptor, p *path) {
	if d.places != nil {
		d.meant = append(d.meant, field) // it may come later in the document
		return
	}
	// Of a definition that came as a message only the spec itself is in n.
	found := message.Fields().ByJSONName(field.name)
	if field.parent.String() != p.String() || found == nil {
		return
	}
	if !slices.ContainsFunc(n.entries, func(e entry) bool { return e.key == found.JSONName() || e.key == string(found.Name()) }) {
		d.settle(field)
	}
}

// settleMeant settles those of the fields that hints name that the document,
// which has been read, does not have.
func (d *decoder) settleMeant() {
	for _, field := range d.meant {
		if _, there := d.places[field.String()]; !there {
			d.settle(field)
		}
	}
	d.meant = nil
}

func fieldNames(message protoreflect.MessageDescriptor) []string {
	var names []string
	for i := range message.Fields().Len() {
		names = append(names, message.Fields().Get(i).JSONName())
	}
	return names
}

func extend(p *path, fields string) *path {
	for name := range strings.SplitSeq(fields, ".") {
		p = p.field(name)
	}
	return p
}

// home is a part of a task that has fields of its own.
type home struct {
	message protoreflect.MessageDescriptor
	in      string // in words
	below   string // field of the task, empty for the task itself
}

// homes lists the parts of a task, the task itself first, seen from the mapping
// n at p.
func (d *decoder) homes(n *node, message protoreflect.MessageDescriptor, p *path) []home {
	task, _ := p.task()
	homes := []home{
		{(&v1.TaskDefinition{}).ProtoReflect().Descriptor(), "the task itself", ""},
		{(&v1.Constraints{}).ProtoReflect().Descriptor(), "constraints", "constraints"},
		{(&v1.Resources{}).ProtoReflect().Descriptor(), "resources", "resources"},
		{(&v1.RetryPolicy{}).ProtoReflect().Descriptor(), "retry", "retry"},
	}
	if spec := newSpec(d.taskType(n, message, task)); spec != nil {
		homes = append(homes, home{spec.ProtoReflect().Descriptor(), "spec", "spec"})
	}
	return homes
}

// belongs finds a field of that very name in another part of the definition.
func (d *decoder) belongs(name string, n *node, message protoreflect.MessageDescriptor, p *path) string {
	taskName, inTask := p.task()
	homes := d.homes(n, message, p)
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
			at := d.base.field("tasks").key(taskName)
			if home.below != "" {
				at = at.field(home.below)
			}
			d.mean(at.field(field), n, message, p)
		}
		return field + " belongs in " + home.in
	}
	if field := fieldLike((&v1.Definition{}).ProtoReflect().Descriptor(), name); field != "" && inTask {
		return field + " belongs at the top of the document"
	}
	return ""
}

// taskType returns the type of the task that a field is in. While the task
// itself is being read, it is still in the tree only.
func (d *decoder) taskType(n *node, message protoreflect.MessageDescriptor, task string) string {
	if message.FullName() != "switchyard.v1.TaskDefinition" {
		n = d.places[d.base.field("tasks").key(task).field("type").String()].value
		if n == nil {
			return ""
		}
		return n.text
	}
	for _, e := range n.entries {
		if e.key == "type" {
			return e.value.text
		}
	}
	return v1.TypeShell
}

// fieldLike returns the field of a message that is spelled like name but for
// case and separators.
func fieldLike(message protoreflect.MessageDescriptor, name string) string {
	for i := range message.Fields().Len() {
		if field := message.Fields().Get(i).JSONName(); squash(field) == squash(name) {
			return field
		}
	}
	return ""
}
