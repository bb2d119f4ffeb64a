package condition

import (
	"context"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// View is what a condition sees.
type View struct {
	// Parents are the ancestors by name; those that the expression reads must be
	// there. Without a result the exit code is -1, and streams and output are
	// empty.
	Parents map[string]*v1.ParentView
	// Workflow is the run.
	Workflow *v1.WorkflowView
}

// Evaluator evaluates conditions and keeps their compiled programs, as many as
// fit its bound. Safe for concurrent use.
type Evaluator struct {
	programs *cache
}

// NewEvaluator makes an Evaluator that has compiled nothing yet.
func NewEvaluator() *Evaluator {
	return &Evaluator{programs: newCache(maxPrograms, maxProgramText)}
}

// Evaluate tells whether an expression is true of a view; a blank one is. It
// ends with an error, and false, when the expression does not compile (an
// *Error), reads what is not there, costs too much, or ctx is done. What it does
// is bounded: at worst it takes some tenths of a second and some ten MiB, and
// it returns within milliseconds after ctx is done.
//
// It does not change the view, and the view must not change meanwhile.
func (e *Evaluator) Evaluate(ctx context.Context, expr string, view View) (bool, error) {
	if isBlank(expr) {
		return true, nil
	}
	if ctx.Err() != nil {
		return false, fmt.Errorf("evaluate condition: %w", context.Cause(ctx))
	}
	p, err := e.program(expr)
	if err != nil {
		return false, err
	}
	return p.run(ctx, view)
}

func (e *Evaluator) program(expr string) (*program, error) {
	if p := e.programs.get(expr); p != nil {
		return p, nil
	}
	l, err := theLanguage()
	if err != nil {
		return nil, err
	}
	compiled, problem := l.compile(expr)
	if problem != nil {
		return nil, problem
	}
	p, err := l.plan(compiled)
	if err != nil {
		return nil, err
	}
	e.programs.put(expr, p)
	return p, nil
}
