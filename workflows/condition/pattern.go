package condition

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// dynamicMatch marks a call of matches() whose pattern is not a literal, so that its cost includes compiling the pattern.
const dynamicMatch = "matches_dynamic"

// pattern is a compiled regular expression.
type pattern struct {
	regexp *regexp.Regexp
	size   int // number of instructions
	err    error
}

// maxPatterns is the most regular expressions that a program caches.
const maxPatterns = 32

// pattern returns a regular expression from the cache, which has the literal ones of the program and some that were computed.
func (p *program) pattern(text string) *pattern {
	found, ok := p.patterns.get(text)
	if !ok {
		found = compilePattern(text)
		p.patterns.put(text, len(text), found)
	}
	return found
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
	// types.RegexProgramSize of CEL is not used here: it panics on a{2} because it does not call Simplify.
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

// matches implements text.matches(pattern) with cached patterns.
func (p *program) matches(args ...ref.Val) ref.Val {
	text, expression, ok := twoStrings(args)
	if !ok || len(args) != 2 {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	found := p.pattern(expression)
	if found.err != nil {
		return types.WrapErr(fmt.Errorf("regular expression %.80q: %w", expression, found.err))
	}
	return types.Bool(found.regexp.MatchString(text))
}

// matchCost returns the cost of a match in Go's implementation, where at worst every instruction is active at every character.
func (p *program) matchCost(overload string, args []ref.Val) uint64 {
	text, expression, ok := twoStrings(args)
	if !ok {
		return 1
	}
	found := p.pattern(expression)
	cost := 1 + uint64(len(text))*uint64(found.size)/matchRate
	if overload == dynamicMatch {
		cost += uint64(len(expression)) + uint64(found.size)
	}
	return cost
}
