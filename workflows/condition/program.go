package condition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// program is a compiled expression. It is safe for concurrent use.
type program struct {
	cel      cel.Program
	kind     Kind
	text     *expression
	model    *model
	calls    map[string]*functions.Overload
	patterns cache[string, *pattern]
	tasks    map[string][]string // tasks that it names, by the variable that holds them
	dynamic  map[string]bool     // variables of which it reads tasks that it does not name
}

// plan makes a checked expression executable.
func (l *language) plan(e *expression, more ...cel.ProgramOption) (*program, error) {
	p := &program{kind: e.kind, text: e, model: l.model, calls: l.calls, patterns: cache[string, *pattern]{entries: maxPatterns, text: math.MaxInt}, tasks: map[string][]string{}, dynamic: map[string]bool{}}
	for _, r := range e.readings {
		switch {
		case r.isInput:
		case r.task == "":
			p.dynamic[r.variable] = true
		default:
			p.tasks[r.variable] = append(p.tasks[r.variable], r.task)
		}
	}
	var err error
	p.cel, err = l.env.Program(e.checked, append(more,
		cel.CustomDecoratorV2(p.guard),
		cel.CostTracking(p),
		cel.CostTrackerOptions(p.textCosts(l)...),
		cel.CostLimit(costLimit),
		cel.InterruptCheckFrequency(interruptEvery),
	)...)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", e.kind.noun(), err)
	}
	return p, nil
}

// CallCost returns the cost of a completed call to CEL's cost tracker.
func (p *program) CallCost(function, overload string, args []ref.Val, _ ref.Val) *uint64 {
	cost := p.callCost(function, overload, args)
	return &cost
}

// textCosts registers CallCost for the functions whose library has a cost model of its own.
func (p *program) textCosts(l *language) []interpreter.CostTrackerOption {
	var options []interpreter.CostTrackerOption
	for function, overloads := range l.textCalls {
		for _, overload := range overloads {
			options = append(options, interpreter.OverloadCostTracker(overload, func(args []ref.Val, result ref.Val) *uint64 {
				return p.CallCost(function, overload, args, result)
			}))
		}
	}
	return options
}

// variables returns the variables of a view that the program sees.
func (p *program) variables(view View) (map[string]any, error) {
	variables := map[string]any{
		workflowVariable: p.model.workflowValue(view.Workflow),
		inputVariable:    p.model.data(view.Input),
		attemptVariable:  p.model.attemptValue(view.Attempt),
		runVariable:      p.model.runValue(view.Run),
		eventVariable:    view.Event,
		taskVariable:     view.EventTask,
	}
	for _, variable := range []string{parentVariable, tasksVariable} {
		tasks := make(map[string]any, len(p.tasks[variable]))
		for _, name := range p.tasks[variable] {
			task, ok := view.Parents[name]
			if !ok {
				return nil, p.kind.errorf("%s '%s' is unknown", strings.TrimSuffix(variable, "s"), name)
			}
			tasks[name] = p.model.taskValue(task)
		}
		if p.dynamic[variable] {
			for name, task := range view.Parents {
				if isOutside := variable == tasksVariable; !p.kind.isInFinally() || task.GetFinally() != isOutside {
					tasks[name] = p.model.taskValue(task)
				}
			}
		}
		variables[variable] = types.NewStringInterfaceMap(p.model, tasks)
	}
	return variables, nil
}

// run evaluates the program for a view.
func (p *program) run(ctx context.Context, view View) (ref.Val, error) {
	variables, err := p.variables(view)
	if err != nil {
		return nil, err
	}
	value, _, err := p.cel.ContextEval(ctx, variables)
	if err != nil {
		return nil, p.explain(err, variables)
	}
	return value, nil
}

// mistyped returns the error for a value whose type turns out to be wrong only at evaluation.
func (k Kind) mistyped(value ref.Val) error {
	remedy := ""
	if _, isText := value.(types.String); isText {
		switch k.base() {
		case Items:
			remedy = "; key=value outputs are texts: write lines(x), json(x) or x.split(separator), or write the output as a JSON object"
		case Count:
			remedy = "; key=value outputs are texts: write int(x), or write the output as a JSON object"
		}
	}
	return fmt.Errorf("%s; this one is of type %s%s%s", k.wanted(), value.Type().TypeName(), shown(value), remedy)
}

// explain returns an error with the position of the failure, if CEL reports it, and the values that were read.
func (p *program) explain(err error, variables map[string]any) error {
	hint := ""
	if strings.Contains(err.Error(), "no such overload") {
		hint = " (both sides must be of one type; string(x), int(x) and double(x) convert)"
	}
	if values := p.readValues(variables); values != "" {
		hint += "; " + values
	}
	failed, ok := errors.AsType[*types.Err](err)
	if !ok || failed.NodeID() == 0 {
		return p.kind.errorf("%w%s", err, hint)
	}
	s := p.text.source
	at := p.text.checked.NativeRep().SourceInfo().GetStartLocation(failed.NodeID())
	place := errorAt(s.written, s.offsetOf(at.Line(), at.Column()), "", "")
	return p.kind.errorf("%d:%d: %w%s", place.Line, place.Column, err, hint)
}
