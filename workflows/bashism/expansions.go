package bashism

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// variables matches the variables that only bash sets.
var variables = regexp.MustCompile(`^(BASHPID|BASH_(COMMAND|LINENO|REMATCH|SOURCE|SUBSHELL)|DIRSTACK|EPOCHREALTIME|EPOCHSECONDS|EUID|FUNCNAME|HOSTTYPE|MACHTYPE|OSTYPE|PIPESTATUS|RANDOM|SECONDS|SRANDOM|UID)$`)

// parameter notes what an expansion of a variable uses.
func (f *finder) parameter(n *syntax.ParamExp) {
	f.addIf(n.Excl, n.Pos(), "${!x}")
	f.addIf(n.Index != nil, n.Pos(), arrays)
	f.addIf(n.Slice != nil, n.Pos(), "${x:0:1}")
	f.addIf(n.Repl != nil, n.Pos(), "${x/a/b}")
	handlesUnset := false
	if n.Exp != nil {
		switch n.Exp.Op {
		case syntax.UpperFirst, syntax.UpperAll:
			f.add(n.Pos(), "${x^^}")
		case syntax.LowerFirst, syntax.LowerAll:
			f.add(n.Pos(), "${x,,}")
		case syntax.OtherParamOps:
			f.add(n.Pos(), "${x@Q}")
		case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		default:
			handlesUnset = true
		}
	}
	if !handlesUnset && n.Index == nil {
		f.variable(n.Pos(), n.Param.Value)
	}
}

func (f *finder) variable(at syntax.Pos, name string) {
	f.addIf(variables.MatchString(name), at, "$"+name)
}

// operands notes the variables of an arithmetic expression, which need no $.
func (f *finder) operands(all ...syntax.ArithmExpr) {
	for _, operand := range all {
		if word, ok := operand.(*syntax.Word); ok {
			f.variable(word.Pos(), word.Lit())
			f.addIf(strings.Contains(word.Lit(), "#"), word.Pos(), "16#ff")
		}
	}
}

// redirect notes what a redirection uses.
func (f *finder) redirect(n *syntax.Redirect) {
	target := n.Word.Lit()
	isFile := strings.Trim(target, "0123456789-") != ""
	switch {
	case n.N != nil && strings.HasPrefix(n.N.Value, "{"):
		f.add(n.Pos(), "{fd}>")
	case n.Op == syntax.WordHdoc, n.Op == syntax.RdrAll, n.Op == syntax.AppAll:
		f.add(n.OpPos, n.Op.String())
	case n.Op == syntax.DplOut && n.N == nil && isFile:
		f.add(n.OpPos, ">& FILE")
	}
}

var (
	braceSequence = regexp.MustCompile(`(?:^|[^\\])\{(-?[0-9]+\.\.-?[0-9]+|[A-Za-z]\.\.[A-Za-z])(\.\.-?[0-9]+)?\}`)
	braceList     = regexp.MustCompile(`(?:^|[^\\])\{[^{}]*,[^{}]*\}`)
)

// braces notes words that bash expands to several. It passes over words with a colon: they are addresses, which some programs
// expand, or JSON.
func (f *finder) braces(words []*syntax.Word) {
	for _, word := range words {
		if strings.Contains(f.text(word), ":") {
			continue
		}
		var text strings.Builder
		for _, part := range word.Parts {
			if literal, ok := part.(*syntax.Lit); ok {
				text.WriteString(literal.Value)
			} else {
				text.WriteString("x")
			}
		}
		f.addIf(braceSequence.MatchString(text.String()), word.Pos(), "{1..5}")
		f.addIf(braceList.MatchString(text.String()), word.Pos(), "{a,b}")
	}
}
