package definition

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
)

// maxExpressions is the most distinct expressions in a definition: each takes a tenth of a millisecond to check.
const maxExpressions = 20_000

// References returns, for each task with an expression, the ancestors whose results its expressions read. The error is
// Problems; a checked definition has none.
func References(def *v1.Definition) (map[string]*historyv1.ConditionReferences, error) {
	d := &decoder{Report: &source.Report{}}
	references := newSight(d, def, newGraph(def)).expressions(def)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return references, nil
}

// expressions checks every expression against what its task can see, and returns what the expressions of each task read.
func (s *sight) expressions(def *v1.Definition) map[string]*historyv1.ConditionReferences {
	references := map[string]*historyv1.ConditionReferences{}
	for i, name := range s.graph.names {
		task, at := v1.TaskNamed(def, name), taskPath(s.base, def, name)
		if s.unread(at.Field("dependsOn"), len(task.GetDependsOn())) {
			continue
		}
		if s.IsFull() || s.checked > maxExpressions {
			return references
		}
		if found := s.task(i, task, at); found != nil {
			references[name] = found
		}
	}
	return references
}

// sight is what the expressions of a definition may see, and the state of checking them.
type sight struct {
	*decoder
	def    *v1.Definition
	graph  *graph
	fanOut []string
	inputs []string
	// left holds the names of the artifacts that tasks leave.
	left map[string][]string
	// good holds the shapes of expressions, by kind, that are known to be valid.
	good map[condition.Kind]map[string]bool
	// checked is the number of expressions that had to be checked.
	checked int

	// doubter warns about comparisons; nil if no one reads warnings.
	doubter *doubter

	// These fields describe the current task.
	number    int
	dependsOn []string
	ancestors []string // nil until computed
	found     *historyv1.ConditionReferences
}

func newSight(d *decoder, def *v1.Definition, g *graph) *sight {
	s := &sight{decoder: d, def: def, graph: g, left: map[string][]string{}, good: map[condition.Kind]map[string]bool{}}
	for _, name := range g.names {
		task := v1.TaskNamed(def, name)
		for _, out := range task.GetArtifacts().GetOut() {
			s.left[name] = append(s.left[name], out.GetName())
		}
		if task.GetParallel() != nil || task.GetForeach() != nil {
			s.fanOut = append(s.fanOut, name)
		}
	}
	if len(def.GetInputs()) > 0 {
		s.inputs = slices.Sorted(maps.Keys(def.GetInputs()))
	}
	return s
}

// task checks the expressions of a task and returns what they read, or nil if it has none.
func (s *sight) task(number int, task *v1.TaskDefinition, at *source.Path) *historyv1.ConditionReferences {
	s.number, s.dependsOn, s.ancestors, s.found = number, task.GetDependsOn(), nil, nil
	fan, _ := Fan(task)
	s.expression(condition.Condition, task.GetCondition(), at.Field("condition"))
	if fan.Foreach {
		s.expression(condition.Items, fan.Expression, at.Field("foreach"))
	} else {
		s.expression(condition.Count, fan.Expression, at.Field("parallel"))
	}
	s.expression(condition.CacheKey, task.GetCache().GetKey(), at.Field("cache").Field("key"))
	s.expression(condition.Retry, task.GetRetry().GetWhen(), at.Field("retry").Field("when"))
	s.templates(task, at)
	s.artifacts(task, at)
	s.workspace(task, at.Field("workspace"))
	return s.found
}

// expression checks one expression. A blank text is not an expression.
func (s *sight) expression(kind condition.Kind, text string, p *source.Path) {
	if strings.TrimSpace(text) == "" {
		return
	}
	if s.check(kind, text, 1, p, func(scope condition.Scope) ([]string, error) { return condition.Check(text, scope) }) {
		s.doubts(kind, text, text, 0, p)
	}
}

// doubts warns about comparisons of a valid expression whose outcome is always the same. text holds the expression from an offset
// on.
func (s *sight) doubts(kind condition.Kind, expression, text string, offset int, p *source.Path) {
	if s.doubter == nil {
		return
	}
	for _, doubt := range s.doubter.doubts(s, kind, expression) {
		s.Warn(s.locateInText(text, offset+doubt.Offset(), p), p, p.Local()+": "+doubt.Message, doubt.Hint)
	}
}

// check checks a text that holds count expressions of a kind, and records what they read. It reports whether they are valid.
func (s *sight) check(kind condition.Kind, text string, count int, p *source.Path, ask func(condition.Scope) ([]string, error)) bool {
	if s.found == nil {
		s.found = &historyv1.ConditionReferences{}
	}
	of := s.kindOf(kind)
	mark := s.mark
	if strings.Contains(text, "artifacts") {
		mark = func(task string) string { return s.mark(task) + ":" + strings.Join(s.left[task], ",") }
	}
	shape, named, hasShape := shapeOf(text, s.isInFinally(), mark)
	slices.Sort(named)
	if hasShape && s.good[of][shape] && s.mayRead(named) {
		s.reads(kind, named)
		return true
	}
	if s.checked += count; s.checked > maxExpressions {
		s.Fail(s.locate(p), p, fmt.Sprintf("the workflow has more than %d expressions", maxExpressions), "split the workflow, or let tasks read $SWITCHYARD_INPUT")
		return false
	}
	tasks, err := ask(condition.Scope{
		Kind: of, Task: s.graph.names[s.number], Ancestors: s.above(), Ended: s.ended(), Tasks: s.graph.names, FanOut: s.fanOut, Artifacts: s.left, Inputs: s.inputs,
	})
	if err != nil {
		s.badExpression(err, p)
		return false
	}
	s.reads(kind, tasks)
	if hasShape && slices.Equal(tasks, named) {
		if s.good[of] == nil {
			s.good[of] = map[string]bool{}
		}
		s.good[of][shape] = true
	}
	return true
}

// isInFinally reports whether the current task belongs to `finally`.
func (s *sight) isInFinally() bool { return v1.IsInFinally(s.def, s.graph.names[s.number]) }

// kindOf returns the kind of an expression of the current task.
func (s *sight) kindOf(kind condition.Kind) condition.Kind {
	if s.isInFinally() {
		return kind.InFinally()
	}
	return kind
}

// ended returns the tasks that the current task sees because it belongs to `finally`, sorted.
func (s *sight) ended() []string {
	if s.isInFinally() {
		return s.graph.ended
	}
	return nil
}

// mark returns what distinguishes a task from others in an expression: whether it fans out, and whether it has ended before `finally`.
func (s *sight) mark(task string) (mark string) {
	if _, fansOut := slices.BinarySearch(s.fanOut, task); fansOut {
		mark = "*"
	}
	if _, hasEnded := slices.BinarySearch(s.ended(), task); hasEnded {
		mark += "^"
	}
	return mark
}

// above returns the ancestors of the current task, sorted.
func (s *sight) above() []string {
	if s.ancestors == nil {
		s.ancestors = s.graph.ancestors(s.number)
	}
	return s.ancestors
}

// mayRead reports whether the current task sees other tasks. Usually they are its parents.
func (s *sight) mayRead(tasks []string) bool {
	for _, name := range tasks {
		if slices.Contains(s.dependsOn, name) && name != s.graph.names[s.number] {
			continue
		}
		if _, is := slices.BinarySearch(s.above(), name); is {
			continue
		}
		if _, is := slices.BinarySearch(s.ended(), name); !is {
			return false
		}
	}
	return true
}

// reads records what an expression reads.
func (s *sight) reads(kind condition.Kind, tasks []string) {
	if len(tasks) == 0 {
		return
	}
	switch kind {
	case condition.Condition:
		s.found.Tasks = tasks
	case condition.Count, condition.Items:
		s.found.FanOut = tasks
	case condition.CacheKey:
		s.found.Cache = tasks
	case condition.Value:
		s.found.Templates = merge(s.found.Templates, tasks)
	}
}

// merge returns the union of two sorted lists of names, sorted.
func merge(names, more []string) []string {
	if len(names) == 0 {
		return more
	}
	all := slices.Concat(names, more)
	slices.Sort(all)
	return slices.Compact(all)
}

// unread reports whether a list, or one of its items, could not be decoded.
func (s *sight) unread(list *source.Path, items int) bool {
	if len(s.Failed) == 0 {
		return false
	}
	for i := range items {
		if s.IsSettled(list.Item(i)) {
			return true
		}
	}
	return s.IsSettled(list)
}

// badExpression reports every fault of an expression, at its place in the document.
func (s *sight) badExpression(err error, p *source.Path) {
	label := p.Local() + ": "
	bad, ok := errors.AsType[*condition.Error](err)
	if !ok {
		s.Add(s.locate(p), p, label+err.Error(), "")
		return
	}
	s.fault(bad, p)
	for _, other := range bad.More {
		s.fault(other, p)
	}
}

// fault reports one fault of the expression at p.
func (s *sight) fault(bad *condition.Error, p *source.Path) {
	label := p.Local() + ": "
	if strings.HasPrefix(bad.Message, p.Local()+" ") {
		label = "" // the message already begins with it: "foreach must be a list"
	}
	at, exact := s.locate(p), false
	if n := s.nodeAt(p); n != nil {
		at, exact = s.Lines.Inside(n, source.Offset{Line: bad.Line, Column: bad.Column})
	}
	problem := s.Add(at, p, label+bad.Message, bad.Hint)
	if !exact {
		// The marker under the document's line would not be under the fault; CEL's own marker is.
		_, problem.Snippet, _ = strings.Cut(bad.Caret, "\n")
	}
}
