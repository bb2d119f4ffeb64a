package condition

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// dynamicMatch marks a call of matches() whose pattern is not written out, so
// that compiling it is part of the cost.
const dynamicMatch = "matches_dynamic"

// pattern is a compiled regular expression.
type pattern struct {
	regexp *regexp.Regexp
	size   int // instructions
	err    error
}

// patterns keeps the regular expressions of one program, those that were
// written out and a few that were put together. Safe for concurrent use.
type patterns struct {
	mu   sync.Mutex
	kept map[string]*pattern
}

// maxPatterns is the number of regular expressions that a program keeps.
const maxPatterns = 32

func (p *patterns) get(text string) *pattern {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found, ok := p.kept[text]; ok {
		return found
	}
	made := compilePattern(text)
	if len(p.kept) >= maxPatterns {
		clear(p.kept)
	}
	if p.kept == nil {
		p.kept = make(map[string]*pattern)
	}
	p.kept[text] = made
	return made
}

var errPatternSize = errors.New("the regular expression is too large")

func compilePattern(text string) *pattern {
	if len(text) > maxPattern {
		return &pattern{err: errPatternSize}
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return &pattern{err: err}
	}
	// Not types.RegexProgramSize of CEL: it panics on a{2}, for lack of Simplify.
	compiled, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return &pattern{err: err}
	}
	if size := len(compiled.Inst); size > maxProgram {
		return &pattern{err: errPatternSize}
	}
	expression, err := regexp.Compile(text)
	return &pattern{regexp: expression, size: len(compiled.Inst), err: err}
}

// matches implements text.matches(pattern), with the patterns kept.
func (p *program) matches(args ...ref.Val) ref.Val {
	text, expression, ok := twoStrings(args)
	if !ok || len(args) != 2 {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	found := p.patterns.get(expression)
	if found.err != nil {
		return types.WrapErr(fmt.Errorf("regular expression %.80q: %w", expression, found.err))
	}
	return types.Bool(found.regexp.MatchString(text))
}

// matchCost follows from how Go matches: at worst every instruction is alive at
// every character.
func (p *program) matchCost(overload string, args []ref.Val) uint64 {
	text, expression, ok := twoStrings(args)
	if !ok {
		return 1
	}
	found := p.patterns.get(expression)
	cost := 1 + uint64(len(text))*uint64(found.size)/matchRate
	if overload == dynamicMatch {
		cost += uint64(len(expression)) + uint64(found.size)
	}
	return cost
}
