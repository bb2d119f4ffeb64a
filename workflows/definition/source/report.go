package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// Problems are the faults of a definition, or warnings about it, in the order of the document. As an error they print in a form
// for people.
type Problems []*v1.Problem

// Error returns, for each problem, "file:line:column: message", the line of the document with a marker under the position, and
// the hint. A problem without a position begins with its path instead.
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

const (
	// maxKept is the most problems that are kept while checking: a document of 1 MiB can contain half a million.
	maxKept = 1000
	// MaxReported is the most problems that Err returns.
	MaxReported = 100
)

// Report collects the problems of one document.
type Report struct {
	File    string
	Lines   *Lines // nil if there is no document
	Kept    []*v1.Problem
	Dropped int // number of problems beyond maxKept
	Warned  []*v1.Problem
	// Failed holds the paths whose values could not be read or have been reported already. Further rules about them would only
	// repeat the problem.
	Failed map[string]bool
	// Compared is the number of comparisons of input names so far.
	Compared int
}

// Add reports a problem, unless p is settled. Err later removes duplicates, because an alias turns one place of the document into
// many values.
func (r *Report) Add(at Position, p *Path, message, hint string) *v1.Problem {
	if r.IsSettled(p) {
		return &v1.Problem{}
	}
	if r.IsFull() {
		r.Dropped++
		return &v1.Problem{}
	}
	problem := r.problem(at, p, message, hint)
	r.Kept = append(r.Kept, problem)
	return problem
}

// AddHidden reports a problem on a line that may contain a secret: the snippet shows the line only up to the position.
func (r *Report) AddHidden(at Position, p *Path, message, hint string) {
	problem := r.Add(at, p, message, hint)
	if r.Lines != nil && at.Line > 0 {
		problem.Snippet = r.Lines.hidden(at)
	}
}

// Warn reports something that is allowed but hardly what the author means.
func (r *Report) Warn(at Position, p *Path, message, hint string) {
	if len(r.Warned) < maxKept {
		r.Warned = append(r.Warned, r.problem(at, p, message, hint))
	}
}

func (r *Report) problem(at Position, p *Path, message, hint string) *v1.Problem {
	return &v1.Problem{File: r.File, Line: int32(at.Line), Column: int32(at.Column), Path: p.String(), Message: message, Hint: hint}
}

// Place returns a problem at p without a message.
func (r *Report) Place(at Position, p *Path) *v1.Problem {
	place := r.problem(at, p, "", "")
	if r.Lines != nil && at.Line > 0 {
		place.Snippet = r.Lines.snippet(at)
	}
	return place
}

// Fail reports that the value at p could not be read, and settles p.
func (r *Report) Fail(at Position, p *Path, message, hint string) {
	r.Add(at, p, message, hint)
	r.Settle(p)
}

// Settle suppresses later problems about p and everything below it.
func (r *Report) Settle(p *Path) {
	if r.Failed == nil {
		r.Failed = map[string]bool{}
	}
	r.Failed[p.String()] = true
}

// IsSettled reports whether p or a path above it is settled.
func (r *Report) IsSettled(p *Path) bool {
	if len(r.Failed) == 0 {
		return false
	}
	for {
		if r.Failed[p.String()] {
			return true
		}
		if p == nil {
			return false
		}
		p = p.Parent
	}
}

// IsFull reports whether further problems are only counted, so that hints for them are useless.
func (r *Report) IsFull() bool { return len(r.Kept) >= maxKept }

// Err returns the problems as an error, or nil if there are none.
func (r *Report) Err() error {
	if len(r.Kept) == 0 {
		return nil
	}
	return r.inOrder(r.Kept, r.Dropped, "problems")
}

// Warnings returns the warnings in the order of the document.
func (r *Report) Warnings() Problems { return r.inOrder(r.Warned, 0, "warnings") }

// inOrder returns problems with their snippets in the order of the document, without duplicates. noun names them in the last
// line.
func (r *Report) inOrder(kept []*v1.Problem, dropped int, noun string) Problems {
	slices.SortStableFunc(kept, func(a, b *v1.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Path, b.Path))
	})
	reported := slices.CompactFunc(kept, func(a, b *v1.Problem) bool {
		return a.Line > 0 && a.Line == b.Line && a.Column == b.Column && a.Message == b.Message
	})
	if more := len(reported) - MaxReported + dropped; more > 0 && len(reported) > MaxReported {
		reported = append(reported[:MaxReported:MaxReported], &v1.Problem{File: r.File, Message: fmt.Sprintf("and %d more %s", more, noun)})
	}
	for _, problem := range reported {
		if r.Lines != nil && problem.Line > 0 && problem.Snippet == "" {
			problem.Snippet = r.Lines.snippet(Position{int(problem.Line), int(problem.Column)})
		}
	}
	return reported
}
