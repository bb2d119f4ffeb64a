package definition

import (
	"iter"
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
	//workflowcheck:ignore (the texts are sorted)
	for _, text := range templateTexts(task, nil) {
		if condition.HasTemplate(text) {
			return true
		}
	}
	return false
}

// templateTexts yields the texts of a task in which `${{ }}` is replaced, except for the name of its lock, with their paths. at is
// the path of the task.
func templateTexts(task *v1.TaskDefinition, at *source.Path) iter.Seq2[*source.Path, string] {
	return func(yield func(*source.Path, string) bool) {
		//workflowcheck:ignore (the names are sorted)
		for _, name := range slices.Sorted(maps.Keys(task.GetEnv())) {
			if !yield(at.Field("env").Key(name), task.GetEnv()[name]) {
				return
			}
		}
		texts(structpb.NewStructValue(TemplateSpec(task)), at.Field("spec"))(yield)
	}
}

// texts yields the texts in a value, in the order of the names, with their paths. p is the path of the value.
func texts(v *structpb.Value, p *source.Path) iter.Seq2[*source.Path, string] {
	return func(yield func(*source.Path, string) bool) {
		for at, n := range source.ValueNode(v).Scalars(p) {
			if n.Kind == source.Str && !yield(at, n.Text) {
				return
			}
		}
	}
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
	for _, text := range texts(v, nil) {
		if condition.HasTemplate(text) {
			return true
		}
	}
	return false
}

// templates checks the templates in the spec, the env and the lock name of a task.
func (s *sight) templates(task *v1.TaskDefinition, at *source.Path) {
	s.lockName(task.GetMutex(), at.Field("mutex"))
	s.lockName(task.GetSemaphore().GetName(), at.Field("semaphore").Field("name"))
	for p, text := range templateTexts(task, at) {
		s.template(text, p)
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
