package bashism

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Use is a place at which a script uses what bash has and many shells named sh lack.
type Use struct {
	// Offset is the byte in the script.
	Offset int
	// What is the syntax or the command, in the form in which people know it.
	What string
}

// These limit a script that is parsed: the parser calls itself once for each parenthesis and brace that is open.
const (
	MaxLength  = 32 << 10
	maxNesting = 2000
)

// Find returns the uses of bash in a script, in order, with one use of each kind. isSet reports whether a variable comes from
// outside of the script; other values of variables such as RANDOM come from bash.
func Find(script string, isSet func(name string) bool) []Use {
	nesting := strings.Count(script, "(") + strings.Count(script, "[") + strings.Count(script, "{")
	if len(script) > MaxLength || nesting > maxNesting || strings.Contains(script, "BASH_VERSION") {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil
	}
	f := finder{script: script, own: map[string]bool{}, variables: map[string]bool{}}
	syntax.Walk(file, f.collect)
	syntax.Walk(file, f.visit)
	uses := slices.DeleteFunc(f.uses, func(u Use) bool {
		name, isVariable := strings.CutPrefix(u.What, "$")
		return f.own[u.What] || isVariable && (f.variables[name] || isSet(name))
	})
	slices.SortStableFunc(uses, func(a, b Use) int { return cmp.Compare(a.Offset, b.Offset) })
	var firsts []Use
	for _, use := range uses {
		if !slices.ContainsFunc(firsts, func(first Use) bool { return first.What == use.What }) {
			firsts = append(firsts, use)
		}
	}
	return firsts
}

// finder walks the tree of a script.
type finder struct {
	script string
	uses   []Use
	// own holds the functions of the script, which may have the names of commands of bash, and variables those that it sets.
	own, variables map[string]bool
	// probesPipefail is set if the script tries in a subshell whether its shell has pipefail.
	probesPipefail bool
}

func (f *finder) add(at syntax.Pos, what string) {
	f.uses = append(f.uses, Use{int(at.Offset()), what})
}

// addIf adds a use if the condition holds.
func (f *finder) addIf(holds bool, at syntax.Pos, what string) {
	if holds {
		f.add(at, what)
	}
}

// collect notes what the script defines.
func (f *finder) collect(node syntax.Node) bool {
	switch n := node.(type) {
	case *syntax.FuncDecl:
		f.own[n.Name.Value] = true
	case *syntax.Assign:
		// SECONDS=0 resets the clock of bash.
		if n.Name != nil && (n.Name.Value != "SECONDS" || n.Value == nil || n.Value.Lit() != "0") {
			f.variables[n.Name.Value] = true
		}
	case *syntax.WordIter:
		f.variables[n.Name.Value] = true
	case *syntax.CallExpr:
		if len(n.Args) > 0 && n.Args[0].Lit() == "read" {
			for _, word := range n.Args[1:] {
				f.variables[word.Lit()] = true
			}
		}
	case *syntax.Subshell:
		if len(n.Stmts) == 1 {
			call, isCall := n.Stmts[0].Cmd.(*syntax.CallExpr)
			f.probesPipefail = f.probesPipefail || isCall && len(call.Args) > 1 && call.Args[0].Lit() == "set" && call.Args[len(call.Args)-1].Lit() == "pipefail"
		}
	}
	return true
}

// visit notes the uses of one node.
func (f *finder) visit(node syntax.Node) bool {
	switch n := node.(type) {
	case *syntax.CallExpr:
		f.call(n.Args)
		f.braces(n.Args)
	case *syntax.DeclClause:
		f.declaration(n)
	case *syntax.ForClause:
		f.addIf(n.Select, n.Pos(), "select")
		f.addIf(n.Braces, n.Pos(), "for ...; { }")
		if list, ok := n.Loop.(*syntax.WordIter); ok {
			f.braces(list.Items)
		}
	case *syntax.FuncDecl:
		f.addIf(n.RsrvWord, n.Pos(), "function")
		f.addIf(!n.RsrvWord && !syntax.ValidName(n.Name.Value), n.Pos(), n.Name.Value+"()")
	case *syntax.CaseItem:
		f.addIf(n.OpPos.IsValid() && n.Op != syntax.Break, n.OpPos, n.Op.String()+" in case")
	case *syntax.Redirect:
		f.redirect(n)
	case *syntax.BinaryCmd:
		f.addIf(n.Op == syntax.PipeAll, n.OpPos, "|&")
	case *syntax.ParamExp:
		f.parameter(n)
	case *syntax.Assign:
		f.addIf(n.Append, n.Pos(), "+=")
		f.addIf(n.Index != nil, n.Pos(), arrays)
	case *syntax.ArithmExp:
		f.addIf(n.Bracket, n.Pos(), "$[ ]")
		f.operands(n.X)
	case *syntax.ParenArithm:
		f.operands(n.X)
	case *syntax.UnaryArithm:
		f.addIf(n.Op == syntax.Inc || n.Op == syntax.Dec, n.OpPos, n.Op.String()+" in $(( ))")
		f.operands(n.X)
	case *syntax.BinaryArithm:
		f.addIf(n.Op == syntax.Pow || n.Op == syntax.Comma, n.OpPos, n.Op.String()+" in $(( ))")
		f.operands(n.X, n.Y)
	case *syntax.ArrayExpr:
		f.add(n.Pos(), arrays)
	case *syntax.TestClause:
		f.add(n.Pos(), "[[ ]]")
	case *syntax.ArithmCmd:
		f.add(n.Pos(), "(( ))")
		return false
	case *syntax.CStyleLoop:
		f.add(n.Pos(), "for (( ))")
		return false
	case *syntax.LetClause:
		f.add(n.Pos(), "let")
		return false
	case *syntax.CoprocClause:
		f.add(n.Pos(), "coproc")
	case *syntax.TimeClause:
		if n.Stmt != nil {
			_, isCall := n.Stmt.Cmd.(*syntax.CallExpr)
			f.addIf(!isCall, n.Pos(), "time { }")
		}
	case *syntax.CmdSubst:
		if len(n.Stmts) == 1 && n.Stmts[0].Cmd == nil && len(n.Stmts[0].Redirs) == 1 {
			f.addIf(n.Stmts[0].Redirs[0].Op == syntax.RdrIn, n.Pos(), "$(< FILE)")
		}
	case *syntax.ProcSubst:
		f.add(n.Pos(), n.Op.String()+" )")
	case *syntax.SglQuoted:
		f.addIf(n.Dollar, n.Pos(), "$'...'")
	case *syntax.DblQuoted:
		f.addIf(n.Dollar, n.Pos(), `$"..."`)
	}
	return true
}

// arrays names arrays in a finding.
const arrays = "arrays"
