package definition

import (
	"errors"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

// References returns, for each task with a condition, the ancestors whose
// results the condition reads. The error is Problems; a checked definition has none.
func References(def *v1.Definition) (map[string]*v1.ConditionReferences, error) {
	d := &decoder{report: &report{}}
	references := d.conditions(def, newGraph(def))
	if err := d.err(); err != nil {
		return nil, err
	}
	return references, nil
}

// conditions checks every condition against what its task can see.
func (d *decoder) conditions(def *v1.Definition, g *graph) map[string]*v1.ConditionReferences {
	references := map[string]*v1.ConditionReferences{}
	for i, name := range g.names {
		task, at := def.GetTasks()[name], root.field("tasks").key(name)
		expression := task.GetCondition()
		if strings.TrimSpace(expression) == "" || d.settled(at.field("condition")) || d.unread(at.field("dependsOn"), len(task.GetDependsOn())) {
			continue
		}
		if d.full() {
			return references
		}
		scope := condition.Scope{Task: name, Ancestors: g.ancestors(i), Tasks: g.names}
		tasks, err := condition.Check(expression, scope)
		if err != nil {
			d.badCondition(err, at.field("condition"))
			continue
		}
		references[name] = &v1.ConditionReferences{Tasks: tasks}
	}
	return references
}

// unread says that a list, or one of its items, could not be read.
func (d *decoder) unread(list *path, items int) bool {
	if len(d.failed) == 0 {
		return false
	}
	for i := range items {
		if d.settled(list.item(i)) {
			return true
		}
	}
	return d.settled(list)
}

// badCondition reports what is wrong with a condition, at the place in the
// document where the expression has it.
func (d *decoder) badCondition(err error, p *path) {
	bad, ok := errors.AsType[*condition.Error](err)
	if !ok {
		d.add(d.locate(p), p, "condition: "+err.Error(), "")
		return
	}
	at, exact := d.locate(p), false
	if found, ok := d.places[p.String()]; ok {
		at, exact = d.text.inside(found.value, offset{bad.Line, bad.Column})
	}
	problem := d.add(at, p, "condition: "+bad.Message, bad.Hint)
	if !exact {
		// The mark under the document's line is not under the fault; CEL's own is.
		_, problem.Snippet, _ = strings.Cut(bad.Caret, "\n")
	}
}
