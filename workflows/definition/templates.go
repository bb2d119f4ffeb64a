package definition

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
)

// HasTemplates reports whether the spec or the env of a task contains `${{ }}`, so that their values are not known yet.
func HasTemplates(task *v1.TaskDefinition) bool {
	//workflowcheck:ignore (one is enough, whichever comes first)
	for _, text := range task.GetEnv() {
		if condition.HasTemplate(text) {
			return true
		}
	}
	return holdsTemplate(structpb.NewStructValue(TemplateSpec(task)))
}

// TemplateSpec returns the part of a task's spec in which `${{ }}` is replaced: all of it except the definition in the spec of
// a task of type run, whose templates belong to the run that it starts.
func TemplateSpec(task *v1.TaskDefinition) *structpb.Struct {
	spec := task.GetSpec()
	if task.GetType() != v1.TypeRun || spec.GetFields()["definition"] == nil {
		return spec
	}
	part := &structpb.Struct{Fields: maps.Clone(spec.GetFields())}
	delete(part.Fields, "definition")
	return part
}

func holdsTemplate(v *structpb.Value) bool {
	switch v := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return condition.HasTemplate(v.StringValue)
	case *structpb.Value_ListValue:
		return slices.ContainsFunc(v.ListValue.GetValues(), holdsTemplate)
	case *structpb.Value_StructValue:
		//workflowcheck:ignore (one is enough, whichever comes first)
		for _, field := range v.StructValue.GetFields() {
			if holdsTemplate(field) {
				return true
			}
		}
	}
	return false
}

// templates checks the templates in the spec, the env and the lock name of a task.
func (s *sight) templates(task *v1.TaskDefinition, at *source.Path) {
	for _, name := range slices.Sorted(maps.Keys(task.GetEnv())) {
		s.template(task.GetEnv()[name], at.Field("env").Key(name))
	}
	s.lockName(task.GetMutex(), at.Field("mutex"))
	s.lockName(task.GetSemaphore().GetName(), at.Field("semaphore").Field("name"))
	spec := TemplateSpec(task)
	if p := at.Field("spec"); holdsTemplate(structpb.NewStructValue(spec)) && !s.IsSettled(p) {
		s.templatesIn(source.StructNode(spec), p)
	}
}

// templatesIn checks the templates in every text of a value.
func (s *sight) templatesIn(n *source.Node, p *source.Path) {
	switch n.Kind {
	case source.Str:
		s.template(n.Text, p)
	case source.Sequence:
		for i, item := range n.Items {
			s.templatesIn(item, p.Item(i))
		}
	case source.Mapping:
		for _, e := range n.Entries {
			s.templatesIn(e.Value, p.Key(e.Key))
		}
	}
}

func (s *sight) template(text string, p *source.Path) {
	if !condition.HasTemplate(text) {
		return
	}
	t, err := condition.ParseTemplate(text)
	if err != nil {
		s.badExpression(err, p)
		return
	}
	expressions := t.Expressions()
	isValid := s.check(condition.Value, strings.Join(expressions, templateBetween), len(expressions), p, func(scope condition.Scope) ([]string, error) {
		return condition.CheckTemplate(text, scope)
	})
	if !isValid {
		return
	}
	for offset, expression := range t.Places() {
		s.doubts(condition.Value, expression, text, offset, p)
	}
}

// templateBetween joins the expressions of a text for which only the expressions matter.
const templateBetween = "}}${{"
