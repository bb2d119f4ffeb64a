package definition

import (
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

// doubter finds comparisons in the expressions of a definition whose outcome is always the same.
type doubter struct {
	outcomes *outcomes
	// asks is set if the definition has approvals. The fields of their outputs are known.
	asks bool
	// sound holds the expressions without doubts, by kind and shape, with what is known about the tasks that they name.
	sound map[string]bool
	// count is the number of expressions that had to be examined.
	count int
}

// maxDoubted limits the expressions that are examined: each takes a few tenths of a millisecond.
const maxDoubted = 2000

func newDoubter(def *v1.Definition) *doubter {
	d := &doubter{outcomes: &outcomes{def: def, skippable: map[string]bool{}}, sound: map[string]bool{}}
	for _, name := range v1.TaskNames(def) {
		d.asks = d.asks || v1.TaskNamed(def, name).GetType() == v1.TypeApproval
	}
	return d
}

// doubts returns the doubts about an expression of the current task of s.
func (d *doubter) doubts(s *sight, kind condition.Kind, expression string) []*condition.Error {
	if !condition.MayBeDoubted(expression) && !d.asks || d.count >= maxDoubted {
		return nil
	}
	reader := s.graph.names[s.number]
	outcome := func(task string) condition.Outcome {
		if kind == condition.Retry {
			return d.outcomes.ofTask(task)
		}
		return d.outcomes.seenBy(reader, kind == condition.Condition, s.found.GetTasks(), task)
	}
	key, named, isKnown := shapeOf(expression, s.isInFinally(), s.mark)
	key = fmt.Sprintf("%d %s", s.kindOf(kind), key)
	for _, name := range named {
		key += fmt.Sprint(outcome(name))
	}
	if isKnown = isKnown && kind != condition.Retry; isKnown && d.sound[key] {
		return nil
	}
	d.count++
	found := condition.Doubts(expression, condition.Expectation{
		Kind: s.kindOf(kind), Task: reader, Ancestors: s.above(), Tasks: s.ended(), Outcome: outcome, Input: d.input,
	})
	if isKnown && len(found) == 0 {
		d.sound[key] = true
	}
	return found
}

// input returns the declaration of an input of the run, or nil if there is none.
func (d *doubter) input(name string) *v1.InputDefinition { return d.outcomes.def.GetInputs()[name] }
