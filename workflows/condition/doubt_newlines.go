package condition

import (
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// newlines reports a call that forgets the newline at the end of what a program has printed.
func (d *doubts) newlines(call ast.Expr) {
	function, args := call.AsCall().FunctionName(), argumentsOf(call)
	const ends = "%s ends with a newline, "
	withoutNewline := func(e ast.Expr) []ast.Expr {
		return slices.DeleteFunc(d.words(e), func(literal ast.Expr) bool { return textOf(literal) == "" || strings.HasSuffix(textOf(literal), "\n") })
	}
	compared, _ := comparisonOf(call)
	if function == operators.Index {
		compared = comparison{args, operators.Index}
	}
	for i, side := range compared.sides {
		if stream := d.stream(side); stream != "" && !compared.isPart(i) {
			for _, literal := range withoutNewline(compared.sides[1-i]) {
				d.doubt(literal, "compare "+stream+".trim()", ends+"so it is never '%s'", stream, textOf(literal))
			}
		}
	}
	stream := ""
	if len(args) > 0 {
		stream = d.stream(args[0])
	}
	if stream == "" {
		return
	}
	switch function {
	case overloads.EndsWith:
		for _, literal := range withoutNewline(args[1]) {
			d.doubt(literal, "write "+stream+".trim().endsWith(...)", ends+"and not with '%s'", stream, textOf(literal))
		}
	case overloads.Matches:
		for _, literal := range literals(args[1]) {
			if endsBeforeNewline(textOf(literal)) {
				d.doubt(literal, "write "+stream+".trim().matches(...)", ends+"and this $ matches only at the very end of the text", stream)
			}
		}
	case "split":
		isWhole := d.Kind.base() == Items && call.ID() == d.tree.Expr().ID()
		if isWhole && args[1].Kind() == ast.LiteralKind && textOf(args[1]) == "\n" {
			d.doubt(call, "write "+linesFunction+"("+stream+")", ends+"so the last item is empty", stream)
		}
	case overloads.TypeConvertInt, overloads.TypeConvertUint, overloads.TypeConvertDouble, overloads.TypeConvertBool,
		overloads.TypeConvertTimestamp, overloads.TypeConvertDuration:
		d.doubt(call, "write "+function+"("+stream+".trim())", ends+"which %s() does not accept", stream, function)
	}
}

// stream returns the expression for the output of a program if e is its text up to the last newline, or "".
func (d *doubts) stream(e ast.Expr) string {
	switch e.Kind() {
	case ast.SelectKind:
		switch task := d.streamOf(e); {
		case task == "" || !d.Outcome(task).Prints:
		case task == d.Task:
			return attemptVariable + "." + e.AsSelect().FieldName()
		default:
			return d.spell(task) + "." + e.AsSelect().FieldName()
		}
	case ast.CallKind:
		switch c := e.AsCall(); c.FunctionName() {
		case "lowerAscii", "upperAscii":
			return d.stream(c.Target())
		case overloads.TypeConvertString:
			return d.stream(c.Args()[0])
		case operators.Add:
			return d.stream(c.Args()[1])
		}
	}
	return ""
}

// streamOf returns the task whose output a selection reads, or "" if it reads something else.
func (d *doubts) streamOf(selection ast.Expr) string {
	s := selection.AsSelect()
	of := d.tree.GetType(s.Operand().ID())
	switch {
	case s.IsTestOnly() || of == nil || of.Kind() != types.StructKind || s.FieldName() != "stdout" && s.FieldName() != "stderr":
		return ""
	case of.TypeName() == attemptTypeName:
		return d.Task
	}
	return taskOf(selection)
}

// endsBeforeNewline reports whether a regular expression matches only texts whose end is not a newline.
func endsBeforeNewline(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return false
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return false
	}
	type step struct {
		pc    uint32
		atEnd bool
	}
	isAnchored := false
	// reaches reports whether a match follows, without a further character, after one that may be a newline.
	var reaches func(pc uint32, isNewline, atEnd bool, seen map[step]bool) bool
	reaches = func(pc uint32, isNewline, atEnd bool, seen map[step]bool) bool {
		if seen[step{pc, atEnd}] {
			return false
		}
		seen[step{pc, atEnd}] = true
		switch i := prog.Inst[pc]; i.Op {
		case syntax.InstMatch:
			isAnchored = isAnchored || atEnd
			return isNewline || !atEnd
		case syntax.InstAlt, syntax.InstAltMatch:
			return reaches(i.Out, isNewline, atEnd, seen) || reaches(i.Arg, isNewline, atEnd, seen)
		case syntax.InstEmptyWidth:
			empty := syntax.EmptyOp(i.Arg)
			return reaches(i.Out, isNewline && empty&syntax.EmptyBeginText == 0, atEnd || empty&syntax.EmptyEndText != 0, seen)
		case syntax.InstNop, syntax.InstCapture:
			return reaches(i.Out, isNewline, atEnd, seen)
		}
		return false
	}
	if reaches(uint32(prog.Start), true, false, map[step]bool{}) {
		return false
	}
	for pc := range prog.Inst {
		switch i := &prog.Inst[pc]; i.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if reaches(i.Out, i.MatchRune('\n'), false, map[step]bool{}) {
				return false
			}
		}
	}
	return isAnchored
}
