package definition

import (
	"fmt"
	"regexp"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
)

// fieldScope says which tasks a field of a task has an effect on. A task inherits no default that would have none, and
// a field without an effect is refused.
type fieldScope struct {
	field    string // JSON name
	affects  func(task *v1.TaskDefinition) bool
	reason   string // why it has none, after the name of the field; %s is the type of the task
	hint     string
	typeHint map[string]string // in place of hint
}

// Reasons of fieldScopes.
const (
	withoutNode = "is for tasks that run on a node; one of type %s does not"
	asksPerson  = "is for tasks that run something; one of type %s asks a person"
	unreadInput = "has no effect on a task of type %s whose spec does not read it with ${{ input.NAME }}"
)

// fieldScopes lists each field that has no effect on some tasks, by name.
var fieldScopes = []fieldScope{
	{field: "batch", affects: needsNode, reason: withoutNode},
	{field: "cache", affects: runsSomething, reason: asksPerson, hint: "each run asks anew"},
	{field: "constraints", affects: needsNode, reason: withoutNode},
	{field: "env", affects: needsNode, reason: withoutNode, typeHint: childInput},
	{field: "heartbeatTimeout", affects: needsNode, reason: withoutNode},
	{field: "input", affects: readsInput, reason: unreadInput, typeHint: childInput},
	{field: "priority", affects: competes, reason: asksPerson, hint: "it orders what waits for a node or for a lock"},
	{field: "resources", affects: needsNode, reason: withoutNode},
	{field: "retry", affects: runsSomething, reason: asksPerson, hint: "deadline bounds how long it waits for an answer"},
	{field: "timeout", affects: needsNode, reason: withoutNode, hint: "deadline bounds the time from when it could start"},
}

// childInput names what passes data to the run of a task of type run.
var childInput = map[string]string{v1.TypeRun: "spec.input is what the run is given"}

func needsNode(task *v1.TaskDefinition) bool { return v1.NeedsNode(task.GetType()) }

func runsSomething(task *v1.TaskDefinition) bool { return task.GetType() != v1.TypeApproval }

// competes reports whether a task waits for something that others want, too.
func competes(task *v1.TaskDefinition) bool {
	return runsSomething(task) || task.GetMutex() != "" || task.GetSemaphore() != nil
}

// inputName finds the variable `input` in an expression, and not the field of another.
var inputName = regexp.MustCompile(`(^|[^.\w])input\b`)

// readsInput reports whether anything reads the input of a task. A program finds it in a file.
func readsInput(task *v1.TaskDefinition) bool {
	return needsNode(task) || inputName.MatchString(task.GetCache().GetKey()) || mentionsInput(structpb.NewStructValue(TemplateSpec(task)))
}

func mentionsInput(v *structpb.Value) bool {
	switch v := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return condition.HasTemplate(v.StringValue) && inputName.MatchString(v.StringValue)
	case *structpb.Value_ListValue:
		return slices.ContainsFunc(v.ListValue.GetValues(), mentionsInput)
	case *structpb.Value_StructValue:
		for _, field := range v.StructValue.GetFields() {
			if mentionsInput(field) {
				return true
			}
		}
	}
	return false
}

// mayInherit reports whether a default is of any use to a task.
func mayInherit(task *v1.TaskDefinition, name string) bool {
	i := slices.IndexFunc(fieldScopes, func(s fieldScope) bool { return s.field == name })
	return i < 0 || fieldScopes[i].affects(task)
}

// checkFieldScopes refuses the fields of a task that have no effect on it.
func (d *decoder) checkFieldScopes(task *v1.TaskDefinition, at *source.Path) {
	if d.IsSettled(at.Field("type")) || d.IsSettled(at.Field("spec")) || newSpec(task.GetType()) == nil {
		return
	}
	m := task.ProtoReflect()
	for _, s := range fieldScopes {
		p := at.Field(s.field)
		if !m.Has(m.Descriptor().Fields().ByJSONName(s.field)) || d.IsSettled(p) || s.affects(task) {
			continue
		}
		hint := s.hint
		if own, ok := s.typeHint[task.GetType()]; ok {
			hint = own
		}
		d.Add(d.locateKey(p), p, s.field+" "+fmt.Sprintf(s.reason, task.GetType()), hint)
	}
}
