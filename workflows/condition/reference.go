package condition

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
)

// reading is one place where an expression reads `parent`, or an input of the run.
type reading struct {
	variable   string // that holds the task: parent or tasks
	task       string // empty if only a value decides which task is read
	offset     int    // of the name, in bytes of the expression as written
	field      string // field selected from the task; "" if there is none, or if only an evaluation tells it
	at         int    // offset of the field
	short      bool   // written without `parent`: a field of the output
	isInput    bool   // `field` is an input of the run, and no task is read
	isArtifact bool   // `field` is an artifact of the task
}

// references walks a parsed expression and lists what it reads, in the order of the text. It expands shorthands (discover.files
// becomes parent.discover.output.files). It refuses variables that the kind of expression does not see, loop variables that
// hide `parent` and would make the list wrong, and expressions with unbounded cost.
type references struct {
	source *source
	tree   *ast.AST
	info   *ast.SourceInfo
	kind   Kind
	made   ast.ExprFactory
	nextID int64    // ID of the next created expression; 0 until known
	bound  []string // variables of the enclosing loops
	found  []reading
	loops  int
}

func readings(s *source, tree *ast.AST, kind Kind) ([]reading, *Error) {
	r := references{source: s, tree: tree, info: tree.SourceInfo(), kind: kind, made: ast.NewExprFactory()}
	if err := r.walk(tree.Expr(), 0); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.found, func(a, b reading) int { return a.offset - b.offset })
	return r.found, nil
}

func (r *references) walk(e ast.Expr, depth int) *Error {
	if depth > maxDepth {
		return r.refuse(e, "", "the expression nests more than %d levels", maxDepth)
	}
	switch e.Kind() {
	case ast.IdentKind:
		return r.variable(e)
	case ast.SelectKind:
		return r.selection(e, depth)
	case ast.CallKind:
		return r.call(e, depth)
	case ast.ListKind:
		return r.all(e, e.AsList().Elements(), depth)
	case ast.MapKind:
		var parts []ast.Expr
		for _, entry := range e.AsMap().Entries() {
			parts = append(parts, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return r.all(e, parts, depth)
	case ast.StructKind:
		return r.refuse(e, "a map is {'key': value}", "%s cannot make a message", r.kind.noun())
	case ast.ComprehensionKind:
		return r.loop(e, depth)
	}
	return nil
}

// variable records a read of the whole `parent`, and refuses invisible variables.
func (r *references) variable(e ast.Expr) *Error {
	name := strings.TrimPrefix(e.AsIdent(), ".")
	switch {
	case slices.Contains(r.bound, name):
	case isVariableName(name) && !r.kind.sees(name):
		return r.refuse(e, cmp.Or(r.kind.nameHint(name), r.kind.noun()+" sees "+r.kind.visible()), "undeclared reference to '%s'", name)
	case r.kind.readsTasks(name):
		r.found = append(r.found, reading{variable: name, offset: r.offset(e)})
	}
	return nil
}

func (r *references) selection(e ast.Expr, depth int) *Error {
	s := e.AsSelect()
	if of := r.holderOf(s.Operand()); of != "" {
		r.found = append(r.found, reading{variable: of, task: s.FieldName(), offset: r.name(e, s.FieldName())})
		return nil
	}
	if found, ok := r.task(s.Operand()); ok {
		found.field, found.at = s.FieldName(), r.name(e, s.FieldName())
		r.found = append(r.found, found)
		return nil
	}
	if found, ok := r.artifacts(s.Operand()); ok {
		found.field, found.at = s.FieldName(), r.name(e, s.FieldName())
		r.found = append(r.found, found)
		return nil
	}
	if isRunInput(s.Operand()) {
		r.found = append(r.found, reading{offset: r.name(e, s.FieldName()), field: s.FieldName(), isInput: true})
		return nil
	}
	if r.isShort(s.Operand()) {
		return r.writeOut(s.Operand(), s.FieldName(), r.name(e, s.FieldName()))
	}
	return r.walk(s.Operand(), depth+1)
}

// holderOf returns the name of the variable that an expression is, if that holds tasks, otherwise "".
func (r *references) holderOf(e ast.Expr) string {
	if e.Kind() != ast.IdentKind {
		return ""
	}
	name := strings.TrimPrefix(e.AsIdent(), ".")
	if !r.kind.readsTasks(name) {
		return ""
	}
	return name
}

// task returns the reading of the task that an expression names. ok is false if it names none.
func (r *references) task(e ast.Expr) (found reading, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		s := e.AsSelect()
		if of := r.holderOf(s.Operand()); of != "" && !s.IsTestOnly() {
			return reading{variable: of, task: s.FieldName(), offset: r.name(e, s.FieldName())}, true
		}
	case ast.CallKind:
		if of, key, ok := keyed(e.AsCall()); ok && r.holderOf(of) != "" {
			return reading{variable: r.holderOf(of), task: key, offset: r.offset(e.AsCall().Args()[1])}, true
		}
	}
	return reading{}, false
}

// artifacts returns the reading of the task to which the artifacts that an expression names belong. ok is false if it names none.
func (r *references) artifacts(e ast.Expr) (found reading, ok bool) {
	if e.Kind() != ast.SelectKind || e.AsSelect().FieldName() != artifactsField || e.AsSelect().IsTestOnly() {
		return reading{}, false
	}
	of := e.AsSelect().Operand()
	if of.Kind() == ast.SelectKind && of.AsSelect().FieldName() == "result" && !of.AsSelect().IsTestOnly() {
		if found, ok = r.task(of.AsSelect().Operand()); ok {
			found.isArtifact = true
			return found, true
		}
	}
	found, ok = r.task(of)
	found.isArtifact = true
	return found, ok
}

// keyed returns the operand and the key of x['key']. ok is false for other calls.
func keyed(c ast.CallExpr) (of ast.Expr, key string, ok bool) {
	args := c.Args()
	if c.FunctionName() != operators.Index || len(args) != 2 || args[1].Kind() != ast.LiteralKind {
		return nil, "", false
	}
	key, ok = args[1].AsLiteral().Value().(string)
	return args[0], key, ok
}

// isRunInput reports whether an expression is workflow.input.
func isRunInput(e ast.Expr) bool {
	return e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() && e.AsSelect().FieldName() == inputVariable &&
		isVariable(e.AsSelect().Operand(), workflowVariable)
}

// isShort reports whether an expression is a name that can only be short for a task: neither a variable nor a name of CEL's
// own.
func (r *references) isShort(e ast.Expr) bool {
	if !r.kind.shortens() || e.Kind() != ast.IdentKind {
		return false
	}
	name := e.AsIdent()
	return r.kind.isShortFor(name) && !isTypeName(name) && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "@") &&
		!slices.Contains(r.bound, name)
}

// isTypeName reports whether CEL has a type of this name.
func isTypeName(name string) bool {
	switch name {
	case "bool", "bytes", "double", "duration", "dyn", "google", "int", "list", "map", "null_type", "string", "timestamp", "type", "uint":
		return true
	}
	return false
}

// writeOut replaces the name of a task with parent.<task>.output. field is the field selected from the output.
func (r *references) writeOut(e ast.Expr, field string, at int) *Error {
	task := e.AsIdent()
	r.found = append(r.found, reading{variable: parentVariable, task: task, offset: r.offset(e), field: field, at: at, short: true})
	variable := r.made.NewIdent(r.newID(e), parentVariable)
	e.SetKindCase(r.made.NewSelect(e.ID(), r.made.NewSelect(r.newID(e), variable, task), "output"))
	return nil
}

// newID returns an ID for a created expression at the position of e.
func (r *references) newID(e ast.Expr) int64 {
	if r.nextID == 0 {
		r.nextID = ast.MaxID(r.tree)
	}
	r.nextID++
	if place, ok := r.info.GetOffsetRange(e.ID()); ok {
		r.info.SetOffsetRange(r.nextID, place)
	}
	return r.nextID
}

func (r *references) call(e ast.Expr, depth int) *Error {
	c := e.AsCall()
	if of, key, ok := keyed(c); ok {
		at := r.offset(c.Args()[1])
		if found, ok := r.artifacts(of); ok {
			found.field, found.at = key, at
			r.found = append(r.found, found)
			return nil
		}
		switch {
		case r.holderOf(of) != "":
			r.found = append(r.found, reading{variable: r.holderOf(of), task: key, offset: at})
			return nil
		case isRunInput(of):
			r.found = append(r.found, reading{offset: at, field: key, isInput: true})
			return nil
		case r.isShort(of):
			return r.writeOut(of, "", at)
		}
	}
	if args := c.Args(); c.FunctionName() == operators.Index && r.isShort(args[0]) {
		if problem := r.writeOut(args[0], "", 0); problem != nil {
			return problem
		}
	}
	if c.FunctionName() == overloads.Matches && len(c.Args()) > 0 {
		if problem := r.regularExpression(c.Args()[len(c.Args())-1]); problem != nil {
			return problem
		}
	}
	if c.IsMemberFunction() {
		if err := r.walk(c.Target(), depth+1); err != nil {
			return err
		}
	}
	for _, arg := range c.Args() {
		if err := r.walk(arg, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// regularExpression refuses a literal pattern that is invalid.
func (r *references) regularExpression(e ast.Expr) *Error {
	if e.Kind() != ast.LiteralKind {
		return nil
	}
	text, ok := e.AsLiteral().Value().(string)
	if !ok {
		return nil
	}
	if err := compilePattern(text).err; err != nil {
		return r.refuse(e, "regular expressions are RE2's: no look-around, no back-references", "%v", err)
	}
	return nil
}

func (r *references) all(e ast.Expr, parts []ast.Expr, depth int) *Error {
	if len(parts) > 2*maxLiteral || e.Kind() == ast.ListKind && len(parts) > maxLiteral {
		return r.refuse(e, "", "the literal has more than %d entries", maxLiteral)
	}
	for _, part := range parts {
		if err := r.walk(part, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *references) loop(e ast.Expr, depth int) *Error {
	if r.loops++; r.loops > maxLoops {
		return r.refuse(e, "", "the expression has more than %d loops", maxLoops)
	}
	c := e.AsComprehension()
	for _, name := range []string{c.IterVar(), c.IterVar2()} {
		if name == workflowVariable || name == runVariable && r.kind.sees(name) || r.kind.readsTasks(name) {
			return r.refuse(e, "choose another name", "the loop variable %s hides the variable of that name", name)
		}
	}
	for _, part := range []ast.Expr{c.IterRange(), c.AccuInit()} {
		if err := r.walk(part, depth+1); err != nil {
			return err
		}
	}
	outside := len(r.bound)
	r.bound = append(r.bound, c.IterVar(), c.IterVar2(), c.AccuVar())
	for _, part := range []ast.Expr{c.LoopCondition(), c.LoopStep(), c.Result()} {
		if err := r.walk(part, depth+1); err != nil {
			return err
		}
	}
	r.bound = r.bound[:outside]
	return nil
}

func (r *references) refuse(e ast.Expr, hint, format string, args ...any) *Error {
	return errorAt(r.source.written, r.offset(e), hint, format, args...)
}

// offset returns the offset at which CEL places an expression: that of its operator.
func (r *references) offset(e ast.Expr) int {
	at := r.info.GetStartLocation(e.ID())
	return r.source.offsetOf(at.Line(), at.Column())
}

// artifactsField is the field of a task or a result that holds its artifacts.
const artifactsField = "artifacts"

// name returns the offset of a selection's field. CEL places a selection at its dot, and has() at its parenthesis.
func (r *references) name(e ast.Expr, field string) int {
	from := r.offset(e)
	if i := strings.Index(r.source.written[from:], field); i >= 0 {
		gap := r.source.written[from : from+i]
		if !strings.ContainsFunc(gap, func(c rune) bool { return c != '.' && !unicode.IsSpace(c) }) || strings.Contains(gap, parentVariable) || strings.Contains(gap, tasksVariable) {
			return from + i
		}
	}
	return from
}

// isVariable reports whether an expression is a variable. It also accepts `.parent`, CEL's form for a name without a container.
func isVariable(e ast.Expr, name string) bool {
	return e.Kind() == ast.IdentKind && strings.TrimPrefix(e.AsIdent(), ".") == name
}
