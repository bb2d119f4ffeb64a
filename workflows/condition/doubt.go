package condition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/nearest"
)

// Outcome is what a definition says about how a task ends.
type Outcome struct {
	// States holds the states in which the task may have ended when the expression is evaluated.
	States []string
	// Prints is set if the streams of the task are those of a program that ends its last line.
	Prints bool
	// Silent is set if the streams of the task are always empty.
	Silent bool
	// Exits is set if the exit code is 0 when the task has completed, and -1 when it was skipped.
	Exits bool
	// Output holds the fields that the output of the task may have; nil means any.
	Output []string
	// Rule is the rule that keeps the expression from being evaluated after other ends of the task, or "".
	Rule string
}

// Expectation is what an expression can expect of its run.
type Expectation struct {
	// Kind is the kind of the expression.
	Kind Kind
	// Task is the task that the expression belongs to.
	Task string
	// Ancestors holds the ancestors of the task. In `finally`, all other tasks that it reads are outside of that.
	Ancestors []string
	// Tasks holds all tasks of the workflow; nil means that they are unknown.
	Tasks []string
	// Outcome returns what is known about the end of an ancestor or, for attempts, of the task itself.
	Outcome func(task string) Outcome
	// Input returns the declaration of an input of the run, or nil if there is none.
	Input func(name string) *v1.InputDefinition
}

// MayBeDoubted reports whether an expression contains a word about which Doubts may have something to say.
func MayBeDoubted(expr string) bool {
	return slices.ContainsFunc([]string{"state", "stdout", "stderr", "exitCode", inputVariable, runVariable + ".failed"}, func(word string) bool { return strings.Contains(expr, word) })
}

// Doubts returns comparisons of a valid expression whose result is always the same, or is the same in a case that their author
// hardly expects. It reports conditions that can never be true, too.
func Doubts(expr string, of Expectation) []*Error {
	l, err := theLanguage()
	if err != nil {
		return nil
	}
	e, problem := l.compile(expr, of.Kind)
	if problem != nil {
		return nil // the check of expressions reports it
	}
	d := &doubts{Expectation: of, expression: e, tree: e.checked.NativeRep(), loops: map[string]ast.Expr{}}
	ast.PreOrderVisit(d.tree.Expr(), ast.NewExprVisitor(d.visit))
	d.neverStates()
	if len(d.loops) == 0 {
		d.outcomes(l)
	}
	d.deadLetters()
	return d.found.each()
}

// doubts holds the doubts about one expression that were found so far.
type doubts struct {
	Expectation
	*expression
	tree     *ast.AST
	loops    map[string]ast.Expr // the ranges of the loops by their variables
	compared []comparedState
	found    *Error
}

// comparedState is a comparison of the state of a task with a word.
type comparedState struct {
	task, word string
	literal    ast.Expr
}

func (d *doubts) visit(e ast.Expr) {
	switch e.Kind() {
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		d.loops[c.IterVar()] = c.IterRange()
	case ast.SelectKind:
		if task := d.streamOf(e); task != "" && d.Outcome(task).Silent {
			d.doubt(e, "read "+d.spell(task)+".output", "%s.%s is always empty, because the task runs no program", d.spell(task), e.AsSelect().FieldName())
		}
		d.output(e, e.AsSelect().Operand(), e.AsSelect().FieldName())
	case ast.CallKind:
		if of, key, ok := keyed(e.AsCall()); ok {
			d.output(e, of, key)
		}
		if c, ok := comparisonOf(e); ok {
			d.states(c)
			d.inputs(c)
			d.failed(c)
		}
		d.newlines(e)
	}
}

// output reports the selection of a field that the output of its task never has.
func (d *doubts) output(at, of ast.Expr, name string) {
	if of.Kind() != ast.SelectKind || of.AsSelect().FieldName() != "output" {
		return
	}
	if t := d.tree.GetType(of.AsSelect().Operand().ID()); t == nil || t.TypeName() != taskTypeName && t.TypeName() != resultTypeName {
		return
	}
	task := taskOf(of)
	if fields := d.Outcome(task).Output; len(fields) > 0 && !slices.Contains(fields, name) {
		d.doubt(at, cmp.Or(nearest.DidYouMean(name, fields), "it has "+strings.Join(fields, ", ")), "the output of %s never has a field %s", task, name)
	}
}

// failed reports names in a comparison with the failed tasks of the run that no task has.
func (d *doubts) failed(c comparison) {
	for i, side := range c.sides {
		if side.Kind() == ast.IdentKind && d.loops[side.AsIdent()] != nil {
			side = d.loops[side.AsIdent()]
		}
		if side.Kind() != ast.SelectKind || side.AsSelect().FieldName() != "failed" || !isVariable(side.AsSelect().Operand(), runVariable) || len(d.Tasks) == 0 {
			continue
		}
		for _, literal := range d.words(c.sides[1-i]) {
			if name := textOf(literal); !slices.Contains(d.Tasks, name) {
				d.doubt(literal, cmp.Or(nearest.DidYouMean(name, d.Tasks), "the tasks are "+Scope{Ancestors: d.Tasks}.listAncestors()), "the run has no task '%s' that could fail", name)
			}
		}
	}
}

func (d *doubts) doubt(at ast.Expr, hint, format string, args ...any) {
	d.found = addMore(d.found, errorAt(d.source.written, d.offset(at), hint, format, args...))
}

// words returns the literal texts that a comparison names. The variable of a loop over a literal list stands for the texts in it.
func (d *doubts) words(e ast.Expr) []ast.Expr {
	if e.Kind() == ast.IdentKind {
		if list := d.loops[e.AsIdent()]; list != nil && list.Kind() == ast.ListKind {
			return literals(list)
		}
	}
	return literals(e)
}

// states collects the words with which the expression compares states.
func (d *doubts) states(c comparison) {
	for i, side := range c.sides {
		if vocabularyOf(d.tree, side, d.Kind).noun != "state" || isVariable(side.AsSelect().Operand(), runVariable) || d.Kind.base() == Retry || c.isPart(i) {
			continue
		}
		task := taskOf(side)
		for _, literal := range d.words(c.sides[1-i]) {
			word := textOf(literal)
			if !slices.Contains(v1.TaskEndStates(), word) {
				continue
			}
			d.compared = append(d.compared, comparedState{task, word, literal})
		}
	}
}

// neverStates reports words that the state of a task never is. A word for a kind of end passes if the expression has another word
// for such an end, because both together are clear.
func (d *doubts) neverStates() {
	for _, c := range d.compared {
		o := d.outcome(c.task)
		isCovered := func(other comparedState) bool {
			return other.task == c.task && slices.Contains(o.States, other.word) && c.word != v1.TaskSkipped && other.word != v1.TaskSkipped &&
				v1.IsTaskSuccess(other.word) == v1.IsTaskSuccess(c.word)
		}
		if len(o.States) > 0 && !slices.Contains(o.States, c.word) && !slices.ContainsFunc(d.compared, isCovered) {
			d.doubt(c.literal, "it ends as "+nearest.Alternatives(o.States)+o.Rule, "%s is never '%s' here", d.spelledState(c.task), c.word)
		}
	}
}

// outcome returns the outcome of a task, or that of any ancestor if only a value decides which one is read.
func (d *doubts) outcome(task string) Outcome {
	if task != "" {
		return d.Outcome(task)
	}
	any := Outcome{}
	for _, name := range d.Ancestors {
		any.States = append(any.States, d.Outcome(name).States...)
	}
	slices.Sort(any.States)
	any.States = slices.Compact(any.States)
	return any
}

// outcomes reports a condition that is false for each end of a task whose state or exit code it reads, while everything else is
// unknown. It drops the words that make no difference to what the expression says of a dead letter.
func (d *doubts) outcomes(l *language) {
	p, err := l.plan(d.expression, cel.EvalOptions(cel.OptPartialEval))
	if err != nil || d.found != nil {
		return
	}
	done := []string{""}
	for _, r := range d.readings {
		if slices.Contains(done, r.task) || r.isInput || !slices.Contains([]string{"state", "exitCode", "result"}, r.field) {
			continue
		}
		done = append(done, r.task)
		o := d.Outcome(r.task)
		results := make(map[string]ref.Val, len(o.States))
		everFalse := d.Kind.base() == Condition && len(o.States) > 0
		for _, state := range o.States {
			results[state] = d.after(p, r.task, state, o)
			everFalse = everFalse && results[state] == types.False
		}
		if everFalse {
			d.found = addMore(d.found, errorAt(d.source.written, r.offset, r.task+" ends as "+nearest.Alternatives(o.States)+o.Rule,
				"the condition is false however %s ends", r.task))
		}
		d.compared = slices.DeleteFunc(d.compared, func(c comparedState) bool {
			return c.task == r.task && !d.areDifferent(results[c.word], results[v1.TaskDeadLetter])
		})
	}
}

// areDifferent reports whether the values of the expression after two ends differ for certain. A condition differs if it can be
// true after one end alone.
func (d *doubts) areDifferent(a, b ref.Val) bool {
	switch {
	case a == nil || b == nil:
		return false
	case d.Kind.base() == Condition:
		return (a == types.False) != (b == types.False)
	case types.IsUnknownOrError(a) || types.IsUnknownOrError(b):
		return types.IsUnknownOrError(a) != types.IsUnknownOrError(b)
	}
	return types.Equal(a, b) != types.True
}

// deadLetters reports the first comparison with the word of a failure that is retried, if the expression forgets dead letters.
func (d *doubts) deadLetters() {
	forgets := !strings.Contains(d.source.written, v1.TaskDeadLetter) && (len(d.loops) == 0 || !strings.Contains(d.source.written, "exitCode"))
	at := slices.IndexFunc(d.compared, func(c comparedState) bool {
		return v1.IsRetryableEnd(c.word) && slices.Contains(d.outcome(c.task).States, v1.TaskDeadLetter)
	})
	if d.found != nil || at < 0 || !forgets {
		return
	}
	first := d.compared[at]
	state, word, task := d.spelledState(first.task), first.word, first.task
	if task == "" {
		state, task = "parent[t].state", "the tasks"
	}
	d.doubt(first.literal, fmt.Sprintf("compare with both, as in %s in ['%s', 'dead_letter'], or give %s maxRetries: 0", state, word, task),
		"%s is 'dead_letter', not '%s', when the retries are spent", d.spelledState(first.task), word)
}

// after returns the value of the expression after an end of a task. It is unknown if other things decide about it.
func (d *doubts) after(p *program, task, state string, o Outcome) ref.Val {
	unknown := []*cel.AttributePatternType{cel.AttributePattern(workflowVariable), cel.AttributePattern(inputVariable), cel.AttributePattern(attemptVariable), cel.AttributePattern(runVariable)}
	known := []string{"state", "result"}
	view := &historyv1.ParentView{State: state}
	switch {
	case o.Exits && state == v1.TaskSkipped:
		known = append(known, "exitCode")
	case o.Exits && state == v1.TaskCompleted:
		known = append(known, "exitCode")
		view.Result = &v1.TaskResult{}
	}
	for _, field := range slices.Concat(taskFields(), fanOutFields(), []string{"reason", "error"}) {
		if !slices.Contains(known, field) {
			for _, variable := range []string{parentVariable, tasksVariable} {
				of := cel.AttributePattern(variable).QualString(task)
				unknown = append(unknown, of.QualString(field), cel.AttributePattern(variable).QualString(task).QualString("result").QualString(field))
			}
		}
	}
	for _, r := range d.readings {
		if !r.isInput && r.task != task {
			unknown = append(unknown, cel.AttributePattern(r.variable).QualString(r.task))
		}
	}
	parents := types.NewStringInterfaceMap(p.model, map[string]any{task: p.model.taskValue(view)})
	variables, err := cel.PartialVars(map[string]any{parentVariable: parents, tasksVariable: parents}, unknown...)
	if err != nil {
		return types.NewErr("%v", err)
	}
	value, _, err := p.cel.Eval(variables)
	if err != nil {
		return types.WrapErr(err)
	}
	return value
}

// comparison is a comparison of two values, or of a value with those in a list.
type comparison struct {
	sides    []ast.Expr
	function string
}

// comparisonOf returns the comparison that a call makes. It returns false for other calls.
func comparisonOf(call ast.Expr) (comparison, bool) {
	function, sides := call.AsCall().FunctionName(), argumentsOf(call)
	is := len(sides) == 2 && slices.Contains([]string{operators.Equals, operators.NotEquals, operators.In, overloads.Contains}, function)
	if !is {
		return comparison{}, false
	}
	return comparison{sides, function}, true
}

// argumentsOf returns the arguments of a call. The first one of x.f() is x.
func argumentsOf(call ast.Expr) []ast.Expr {
	c := call.AsCall()
	if c.IsMemberFunction() {
		return append([]ast.Expr{c.Target()}, c.Args()...)
	}
	return c.Args()
}

// isPart reports whether the comparison is with a part of the value on a side, or takes that value for a part.
func (c comparison) isPart(side int) bool {
	switch c.function {
	case overloads.Contains:
		return side == 0 || c.sides[0].Kind() != ast.ListKind
	case operators.In:
		return side == 1
	case operators.Index:
		return side == 0
	}
	return false
}

// taskOf returns the name of the task that a field is selected from, or "" if only a value decides about it.
func taskOf(selection ast.Expr) string {
	of := selection.AsSelect().Operand()
	if of.Kind() == ast.SelectKind && of.AsSelect().FieldName() == "result" && !holdsTasks(of.AsSelect().Operand()) {
		of = of.AsSelect().Operand()
	}
	switch of.Kind() {
	case ast.SelectKind:
		return of.AsSelect().FieldName()
	case ast.CallKind:
		_, key, _ := keyed(of.AsCall())
		return key
	}
	return ""
}

// textOf returns the text of a literal of type string.
func textOf(literal ast.Expr) string {
	text, _ := literal.AsLiteral().Value().(string)
	return text
}

// spell returns the expression for a task.
func (d *doubts) spell(task string) string {
	return Scope{Ended: slices.DeleteFunc([]string{task}, func(string) bool { return !d.Kind.isInFinally() || slices.Contains(d.Ancestors, task) })}.spell(task)
}

// spelledState returns the expression for the state of a task.
func (d *doubts) spelledState(task string) string {
	if task == "" {
		return "the state of an ancestor"
	}
	return d.spell(task) + ".state"
}
