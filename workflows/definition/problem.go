package definition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// Problems are the faults of a definition, in the order of the document. As an
// error they print the way people read them.
type Problems []*v1.Problem

// Error returns, for each problem, "file:line:column: message", the line of the
// document with a mark under the place, and the hint. Problems without a
// position begin with their path instead.
func (p Problems) Error() string {
	var b strings.Builder
	for i, problem := range p {
		if i > 0 {
			b.WriteByte('\n')
		}
		if problem.GetFile() != "" {
			b.WriteString(problem.GetFile() + ":")
		}
		switch {
		case problem.GetLine() > 0:
			fmt.Fprintf(&b, "%d:%d: ", problem.GetLine(), problem.GetColumn())
		case problem.GetPath() != "":
			b.WriteString(problem.GetPath() + ": ")
		case problem.GetFile() != "":
			b.WriteByte(' ')
		}
		b.WriteString(problem.GetMessage())
		for line := range strings.Lines(problem.GetSnippet()) {
			b.WriteString("\n    " + strings.TrimRight(line, "\n"))
		}
		if problem.GetHint() != "" {
			b.WriteString("\n  " + problem.GetHint())
		}
	}
	return b.String()
}

// How many problems are kept while checking, and how many are told. A document
// of 1 MiB can hold half a million, which helps nobody.
const (
	maxKept = 1000
	maxTold = 100
)

// report collects the problems of one document.
type report struct {
	file string
	text *text // nil when there is no document
	kept []*v1.Problem
	lost int
	// failed are the paths whose values could not be read or were answered
	// for already; rules about them would only repeat that.
	failed map[string]bool
	// compared counts the comparisons of names of inputs.
	compared int
}

// add reports a problem. The same words about the same place are said once: an
// alias makes one place of the document many values.
func (r *report) add(at position, p *path, message, hint string) *v1.Problem {
	if r.full() {
		r.lost++
		return &v1.Problem{}
	}
	problem := &v1.Problem{
		File: r.file, Line: int32(at.line), Column: int32(at.column),
		Path: p.String(), Message: message, Hint: hint,
	}
	r.kept = append(r.kept, problem)
	return problem
}

// fail reports that the value of p could not be read.
func (r *report) fail(at position, p *path, message, hint string) {
	r.add(at, p, message, hint)
	r.settle(p)
}

// settle keeps rules from reporting on p and what is below it.
func (r *report) settle(p *path) {
	if r.failed == nil {
		r.failed = map[string]bool{}
	}
	r.failed[p.String()] = true
}

func (r *report) settled(p *path) bool {
	if len(r.failed) == 0 {
		return false
	}
	for {
		if r.failed[p.String()] {
			return true
		}
		if p == nil {
			return false
		}
		p = p.parent
	}
}

// full says that more problems will only be counted, so that there is no use
// in working out hints for them.
func (r *report) full() bool { return len(r.kept) >= maxKept }

// err returns the problems as an error, nil when there are none.
func (r *report) err() error {
	if len(r.kept) == 0 {
		return nil
	}
	slices.SortStableFunc(r.kept, func(a, b *v1.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Path, b.Path))
	})
	told := slices.CompactFunc(r.kept, func(a, b *v1.Problem) bool {
		return a.Line > 0 && a.Line == b.Line && a.Column == b.Column && a.Message == b.Message
	})
	if more := len(told) - maxTold + r.lost; more > 0 && len(told) > maxTold {
		told = append(told[:maxTold:maxTold], &v1.Problem{File: r.file, Message: fmt.Sprintf("and %d more problems", more)})
	}
	for _, problem := range told {
		if r.text != nil && problem.Line > 0 && problem.Snippet == "" {
			problem.Snippet = r.text.snippet(position{int(problem.Line), int(problem.Column)})
		}
	}
	return Problems(told)
}
