package definition

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// inherit fills the missing fields of each task from the defaults and then removes the defaults. Without the removal, a
// definition that is read again could mean something else, because a message does not show that a task has set 0 or false.
func (d *decoder) inherit(def *v1.Definition) {
	if def.GetDefaults() == nil {
		return
	}
	from := d.base.Field("defaults")
	bad := d.checkDefaults(def.GetDefaults(), from)
	d.heritage = newHeritage(def.GetDefaults())
	for _, name := range slices.Sorted(maps.Keys(def.GetTasks())) {
		h := heir{decoder: d, bad: bad, task: def.GetTasks()[name]}
		d.heritage.taken[name] = unsaid(h.task)
		h.take(proto.CloneOf(def.GetDefaults()).ProtoReflect(), h.task.ProtoReflect(), from, d.base.Field("tasks").Key(name), true)
	}
	def.Defaults = nil
}

// checkDefaults checks the rules that need no task, and returns the fields that violate one. Tasks do not inherit these fields,
// because each task would be reported.
func (d *decoder) checkDefaults(defaults *v1.TaskDefaults, p *source.Path) (bad map[string]bool) {
	before := len(d.Kept)
	d.noTemplates(defaults.ProtoReflect(), p)
	d.validate(defaults, p)
	d.env(defaults.GetEnv(), p.Field("env"))
	d.secretEnv(defaults.GetSecretEnv(), defaults.GetEnv(), p.Field("secretEnv"))
	d.duration(defaults.GetTimeout(), p.Field("timeout"))
	d.duration(defaults.GetDeadline(), p.Field("deadline"))
	d.heartbeatTimeout(defaults.GetHeartbeatTimeout(), p.Field("heartbeatTimeout"))
	d.nodes(defaults.GetConstraints(), p.Field("constraints"))
	bad = map[string]bool{}
	prefix := p.String() + "."
	for _, problem := range d.Kept[before:] {
		if rest, ok := strings.CutPrefix(problem.GetPath(), prefix); ok {
			if end := strings.IndexAny(rest, ".["); end >= 0 {
				rest = rest[:end]
			}
			bad[rest] = true
		}
	}
	if d.IsSettled(p.Field("type")) {
		bad["type"] = true
	}
	return bad
}

// heir is a task that inherits from the defaults.
type heir struct {
	*decoder
	bad  map[string]bool // fields of the defaults that are not inherited
	task *v1.TaskDefinition
}

// take copies the fields of one message, at path above, to the missing fields of another, at path at. It merges messages field
// by field, and env and secretEnv entry by entry; any other list or mapping counts as one value. top is set for the defaults
// and the task themselves.
func (h heir) take(from, to protoreflect.Message, above, at *source.Path, top bool) {
	fields := from.Descriptor().Fields() // in order: the type comes first
	for i := range fields.Len() {
		field := fields.Get(i)
		target := to.Descriptor().Fields().ByName(field.Name())
		name := field.JSONName()
		p, source := at.Field(name), above.Field(name)
		switch value := from.Get(field); {
		case top && h.bad[name]:
			if name == "type" && h.task.GetType() == "" {
				h.Settle(p)
			}
		case !from.Has(field), h.IsSettled(p):
		case field.IsMap() && top:
			own := to.Mutable(target).Map()
			value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				if entry := p.Key(key.String()); !own.Has(key) && !h.setsVariable(key.String()) && !h.IsSettled(entry) {
					own.Set(key, value)
					h.borrow(source.Key(key.String()), entry)
				}
				return true
			})
		case field.Message() != nil && !field.IsMap() && !field.IsList():
			h.take(value.Message(), to.Mutable(target).Message(), source, p, false)
		case !to.Has(target) && !h.said(p):
			to.Set(target, value)
			h.borrow(source, p)
		}
	}
}

// setsVariable reports whether the task has a variable of this name, secret or not. Both fields that are inherited entry by
// entry hold variables.
func (h heir) setsVariable(name string) bool {
	_, plain := h.task.GetEnv()[name]
	_, secret := h.task.GetSecretEnv()[name]
	return plain || secret
}

// said reports whether the document has a value for p, even a zero one.
func (d *decoder) said(p *source.Path) bool {
	if d.places == nil {
		return false
	}
	found, ok := d.places[p.String()]
	return ok && found.value.Kind != source.Null
}

// borrow sets the place of an inherited value to that of the default.
func (d *decoder) borrow(from, p *source.Path) {
	if d.places == nil {
		return
	}
	if found, ok := d.places[from.String()]; ok {
		d.places[p.String()] = found
	}
}
