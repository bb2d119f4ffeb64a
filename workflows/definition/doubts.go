package definition

import (
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

// doubter finds comparisons in the expressions of a definition whose outcome is always the same.
type doubter struct {
	outcomes *outcomes
	// sound holds the expressions without doubts, by kind and shape, with what is known about the tasks that they name.
	sound map[string]bool
	// count is the number of expressions that had to be examined.
	count int
}

// maxDoubted limits the expressions that are examined: each takes a few tenths of a millisecond.
const maxDoubted = 2000

func newDoubter(def *v1.Definition) *doubter {
	return &doubter{outcomes: &outcomes{def: def, skippable: map[string]bool{}}, sound: map[string]bool{}}
}

// doubts returns the doubts about an expression of the current task of s.
func (d *doubter) doubts(s *sight, kind condition.Kind, expression string) []*condition.Error {
	if !condition.MayBeDoubted(expression) || d.count >= maxDoubted {
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
		Kind: s.kindOf(kind), Task: reader, Ancestors: s.above(), Outcome: outcome,
		Input: func(name string) *v1.InputDefinition { return d.outcomes.def.GetInputs()[name] },
	})
	if isKnown && len(found) == 0 {
		d.sound[key] = true
	}
	return found
}
