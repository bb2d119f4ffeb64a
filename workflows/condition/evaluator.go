package condition

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/structs"
)

// MaxInstances is the most instances that a task may have.
const MaxInstances = 100_000

// View holds everything that an expression sees.
type View struct {
	// Parents holds the ancestors by name. Those that the expression reads must be present, with their data inline and not in
	// the store. If a task has no result, its exit code is -1 and its streams and output are empty.
	Parents map[string]*historyv1.ParentView
	// Workflow is the run.
	Workflow *historyv1.WorkflowView
	// Input is the input of the task, with `item`, `index` and `count` for an instance. Only cache keys and templates see it.
	Input *structpb.Struct
	// Attempt is the failed attempt. Only Retry sees it.
	Attempt *historyv1.AttemptView
	// Run is the run of an event or, for a task in `finally`, the outcome of the run's tasks; such a task sees those among the Parents
	// that are outside of `finally`, too. It is nil for any other task.
	Run *historyv1.RunView
	// Event is the word for the event, and EventTask the task that it is about, or "". Only Notify and Message see them.
	Event     string
	EventTask string
}

// of returns the kind of an expression that is evaluated for the view.
func (v View) of(kind Kind) Kind {
	if v.Run != nil && kind != Notify && kind != Message {
		return kind.InFinally()
	}
	return kind
}

// Evaluator evaluates expressions and caches their compiled programs. It is safe for concurrent use.
//
// An evaluation returns an error if the expression does not compile (an *Error), reads something missing, costs too much, gives
// a value of the wrong type, or if ctx is done. The work is bounded: at worst an evaluation takes a few tenths of a second and
// a hundred MiB, and it returns within milliseconds after ctx is done. It does not modify the view, and the view must not
// change meanwhile. Returned values may share parts of the view.
type Evaluator struct {
	programs cache[written, *program]
}

// NewEvaluator returns an Evaluator with an empty cache.
func NewEvaluator() *Evaluator {
	return &Evaluator{programs: cache[written, *program]{entries: maxPrograms, text: maxProgramText}}
}

// Evaluate reports whether a condition is true for a view. A blank condition is true. With an error the result is false; the
// error shows the condition and the values that it reads.
func (e *Evaluator) Evaluate(ctx context.Context, expr string, view View) (bool, error) {
	ok, err := e.truth(ctx, expr, Condition, view)
	if err != nil {
		return false, fmt.Errorf("%s cannot be evaluated: %w", shownExpression(expr), err)
	}
	return ok, nil
}

// Because explains to people why a condition is false for a view. It shows the condition and the values that it reads, such as
//
//	`parent.test.exitCode == 0` is false: parent.test.exitCode is 1
func (e *Evaluator) Because(expr string, view View) string {
	text := shownExpression(expr) + " is false"
	p, err := e.program(expr, view.of(Condition))
	if err != nil {
		return text
	}
	variables, err := p.variables(view)
	if err != nil {
		return text
	}
	if values := p.readValues(variables); values != "" {
		text += ": " + values
	}
	return text
}

// Retry reports whether the expression of `retry.when` is true for the attempt of a view. A blank expression is true. With an
// error the result is false.
func (e *Evaluator) Retry(ctx context.Context, expr string, view View) (bool, error) {
	return e.truth(ctx, expr, Retry, view)
}

// Applies reports whether the expression of a notification is true for a view. A blank expression is true.
func (e *Evaluator) Applies(ctx context.Context, expr string, view View) (bool, error) {
	return e.truth(ctx, expr, Notify, view)
}

func (e *Evaluator) truth(ctx context.Context, expr string, kind Kind, view View) (bool, error) {
	if isBlank(expr) {
		return true, nil
	}
	value, err := e.value(ctx, expr, kind, view)
	if err != nil {
		return false, err
	}
	result, ok := value.(types.Bool)
	if !ok {
		return false, kind.mistyped(value)
	}
	return bool(result), nil
}

// Count returns the number of instances that the expression of `parallel` gives. A number from JSON is accepted if it is whole.
func (e *Evaluator) Count(ctx context.Context, expr string, view View) (int, error) {
	value, err := e.value(ctx, expr, Count, view)
	if err != nil {
		return 0, err
	}
	number, ok := double(value)
	if !ok {
		return 0, Count.mistyped(value)
	}
	count := float64(number)
	switch {
	case !isInteger(number):
		return 0, Count.errorf("the number of instances is %s, which is not an integer", structs.Number(count))
	case count < 0:
		return 0, Count.errorf("the number of instances is negative: %.0f", count)
	case count > MaxInstances:
		return 0, Count.errorf("%.0f instances are more than %d", count, MaxInstances)
	}
	return int(count), nil
}

// Items returns the list that the expression of `foreach` gives, with at most MaxInstances items.
func (e *Evaluator) Items(ctx context.Context, expr string, view View) (*structpb.ListValue, error) {
	value, err := e.value(ctx, expr, Items, view)
	if err != nil {
		return nil, err
	}
	list, ok := value.(interface {
		ref.Val
		Size() ref.Val
	})
	if !ok || value.Type() != types.ListType {
		return nil, Items.mistyped(value)
	}
	if n := length(list); n > MaxInstances {
		return nil, Items.errorf("the list has %d items; a task has at most %d instances", n, MaxInstances)
	}
	made, err := e.json(value, Items)
	return made.GetListValue(), err
}

// Key returns the text that the expression of a cache key gives; see Text.
func (e *Evaluator) Key(ctx context.Context, expr string, view View) (string, error) {
	value, err := e.value(ctx, expr, CacheKey, view)
	if err != nil {
		return "", err
	}
	if value == types.NullValue {
		return "", CacheKey.mistyped(value)
	}
	made, err := e.json(value, CacheKey)
	if err != nil {
		return "", err
	}
	text := Text(made)
	if text == "" {
		return "", CacheKey.errorf("the key is empty")
	}
	return text, nil
}

// Value returns the value of an expression between `${{` and `}}`.
func (e *Evaluator) Value(ctx context.Context, expr string, view View) (*structpb.Value, error) {
	value, err := e.value(ctx, expr, Value, view)
	if err != nil {
		return nil, err
	}
	return e.json(value, Value)
}

func (e *Evaluator) json(value ref.Val, kind Kind) (*structpb.Value, error) {
	w := jsonWriter{room: maxValue}
	made, err := w.toJSON(value)
	if err != nil {
		return nil, kind.errorf("%w", err)
	}
	return made, nil
}

func (e *Evaluator) value(ctx context.Context, expr string, kind Kind, view View) (ref.Val, error) {
	if ctx.Err() != nil {
		return nil, kind.errorf("%w", context.Cause(ctx))
	}
	if isBlank(expr) {
		return nil, kind.errorf("%w", errBlank)
	}
	p, err := e.program(expr, view.of(kind))
	if err != nil {
		return nil, err
	}
	return p.run(ctx, view)
}

var errBlank = errors.New("there is no expression")

func (e *Evaluator) program(expr string, kind Kind) (*program, error) {
	key := written{kind: kind, expr: expr}
	if p, ok := e.programs.get(key); ok {
		return p, nil
	}
	l, err := theLanguage()
	if err != nil {
		return nil, err
	}
	compiled, problem := l.compile(expr, kind)
	if problem != nil {
		return nil, problem
	}
	p, err := l.plan(compiled)
	if err != nil {
		return nil, err
	}
	e.programs.put(key, len(expr), p)
	return p, nil
}
