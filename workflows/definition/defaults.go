package definition

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// defaultsReader hands the defaults of a definition to its tasks.
type defaultsReader struct {
	*decoder
	inheritance *inheritance // nil if there are no defaults
	// defaultShell is the shell of the specs, or nil. shellUsed is set if a task has inherited it.
	defaultShell *structpb.Value
	shellUsed    bool
}

// inherit fills the missing fields of each task from the defaults and then removes the defaults. Without the removal, a
// definition that is read again could mean something else, because a message does not show that a task has set 0 or false.
func (r *defaultsReader) inherit(def *v1.Definition) {
	if def.GetDefaults() == nil {
		return
	}
	from := r.base.Field("defaults")
	bad := r.check(def.GetDefaults(), from)
	if !bad["spec"] {
		r.defaultShell = def.GetDefaults().GetSpec().GetShell()
	}
	def.Defaults.Spec = nil // inheritShell hands it on when the specs are known
	r.inheritance = newInheritance(def.GetDefaults())
	for _, name := range v1.TaskNames(def) {
		h := heir{decoder: r.decoder, bad: bad, task: v1.TaskNamed(def, name)}
		r.inheritance.taken[name] = missingScopes(h.task)
		h.take(proto.CloneOf(def.GetDefaults()).ProtoReflect(), h.task.ProtoReflect(), from, taskPath(r.base, def, name), true)
	}
	def.Defaults = nil
}

// check checks the rules that need no task, and returns the fields that violate one. Tasks do not inherit these fields,
// because each task would be reported.
func (r *defaultsReader) check(defaults *v1.TaskDefaults, p *source.Path) (bad map[string]bool) {
	before := len(r.Kept)
	misplacedTemplates{r.decoder}.check(defaults.ProtoReflect(), p)
	modelRules{r.decoder}.validate(defaults, p)
	r.longTexts(nil, defaults.GetEnv(), p)
	variableRules{r.decoder}.plain(defaults.GetEnv(), p.Field("env"))
	variableRules{r.decoder}.secret(defaults.GetSecretEnv(), defaults.GetEnv(), p.Field("secretEnv"))
	r.duration(defaults.GetTimeout(), p.Field("timeout"))
	r.duration(defaults.GetDeadline(), p.Field("deadline"))
	r.durationOr(defaults.GetExpectedWithin(), p.Field("expectedWithin"), `"0" means any time`)
	r.heartbeatTimeout(defaults.GetHeartbeatTimeout(), p.Field("heartbeatTimeout"))
	r.stop(defaults.GetStop(), p.Field("stop"))
	constraintRules{r.decoder}.check(defaults.GetConstraints(), p.Field("constraints"))
	gpuRules{r.decoder}.number(defaults.GetResources(), p.Field("resources"))
	interpreterRules{r.decoder}.shell(defaults.GetSpec().GetShell(), p.Field("spec").Field(shellField))
	bad = map[string]bool{}
	prefix := p.String() + "."
	for _, problem := range r.Kept[before:] {
		if rest, ok := strings.CutPrefix(problem.GetPath(), prefix); ok {
			if end := strings.IndexAny(rest, ".["); end >= 0 {
				rest = rest[:end]
			}
			bad[rest] = true
		}
	}
	if r.IsSettled(p.Field("type")) {
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
				if entry := p.Key(key.String()); !own.Has(key) && !hasVariable(h.task, key.String()) && !h.IsSettled(entry) {
					own.Set(key, value)
					h.copyPlace(source.Key(key.String()), entry)
				}
				return true
			})
		case field.Message() != nil && !field.IsMap() && !field.IsList():
			h.take(value.Message(), to.Mutable(target).Message(), source, p, false)
		case !to.Has(target) && !h.hasValue(p):
			to.Set(target, value)
			h.copyPlace(source, p)
		}
	}
}
