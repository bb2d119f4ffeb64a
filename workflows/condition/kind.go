package condition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// Kind is the purpose of an expression. It determines which variables the expression sees and what its value must be.
type Kind int

const (
	// Condition decides whether a task starts: true or false. It sees parent and workflow.
	Condition Kind = iota
	// Count is the number of instances for `parallel`: an integer. It sees parent and workflow.
	Count
	// Items is the list for `foreach`. It sees parent and workflow.
	Items
	// CacheKey is the key of a cached result: any value but null. It sees parent, workflow and input.
	CacheKey
	// Retry decides whether a failed attempt is retried: true or false. It sees attempt and workflow.
	Retry
	// Value is the expression between `${{` and `}}`: any value. It sees parent, workflow and input.
	Value
	// Notify decides whether a target is told about an event: true or false. It sees run, event and task.
	Notify
	// Message is the expression between `${{` and `}}` in the message of a notification: any value. It sees run, event and task.
	Message
)

// inFinally is added to the kind of an expression of a task in `finally`.
const inFinally Kind = 1 << 4

// InFinally returns the kind of the same expression in a task of `finally`, which also sees tasks and run.
func (k Kind) InFinally() Kind { return k | inFinally }

// base returns the kind of the same expression in any other task.
func (k Kind) base() Kind { return k &^ inFinally }

// isInFinally reports whether the expression belongs to a task of `finally`.
func (k Kind) isInFinally() bool { return k&inFinally != 0 }

// These are the names of the variables.
const (
	parentVariable   = "parent"
	tasksVariable    = "tasks"
	runVariable      = "run"
	workflowVariable = "workflow"
	inputVariable    = "input"
	attemptVariable  = "attempt"
	eventVariable    = "event"
	taskVariable     = "task"
)

// isVariableName reports whether a name is a variable of some kind.
func isVariableName(name string) bool {
	return slices.Contains([]string{parentVariable, workflowVariable, inputVariable, attemptVariable}, name) || isSpecialVariable(name)
}

// isSpecialVariable reports whether only tasks in `finally` and notifications see a variable.
func isSpecialVariable(name string) bool {
	return slices.Contains([]string{tasksVariable, runVariable, eventVariable, taskVariable}, name)
}

// isShortFor reports whether a name can be short for a task. A task may have the name of a variable that only others see.
func (k Kind) isShortFor(name string) bool {
	return !isVariableName(name) || isSpecialVariable(name) && !k.sees(name)
}

// readsTasks reports whether a variable holds tasks by name, and the kind sees the variable.
func (k Kind) readsTasks(variable string) bool {
	return (variable == parentVariable || variable == tasksVariable) && k.sees(variable)
}

// kinds describes the expressions of each kind.
var kinds = [...]struct {
	noun      string   // names an expression in messages
	variables []string // that it sees
	shortens  bool
	values    string // in words, to follow "must be"
	types     []types.Kind
}{
	Condition: {"a condition", []string{parentVariable, workflowVariable}, false, "true or false", []types.Kind{types.BoolKind}},
	Count:     {"parallel", []string{parentVariable, workflowVariable}, true, "an integer", []types.Kind{types.IntKind, types.UintKind, types.DoubleKind}},
	Items:     {"foreach", []string{parentVariable, workflowVariable}, true, "a list", []types.Kind{types.ListKind}},
	CacheKey:  {"a cache key", []string{parentVariable, workflowVariable, inputVariable}, true, "text, a number, true or false, a list or a map", keyKinds},
	Retry:     {"retry.when", []string{attemptVariable, workflowVariable}, false, "true or false", []types.Kind{types.BoolKind}},
	Value: {"a template", []string{parentVariable, workflowVariable, inputVariable}, true, "text, a number, true or false, a list, a map or null",
		append(keyKinds, types.NullTypeKind)},
	Notify: {"notify.if", []string{runVariable, eventVariable, taskVariable}, false, "true or false", []types.Kind{types.BoolKind}},
	Message: {"a message", []string{runVariable, eventVariable, taskVariable}, false, "text, a number, true or false, a list, a map or null",
		append(keyKinds, types.NullTypeKind)},
}

// keyKinds are the types of the values that may be a cache key.
var keyKinds = []types.Kind{
	types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.ListKind, types.StringKind, types.BytesKind, types.MapKind, types.TimestampKind,
	types.DurationKind,
}

func (k Kind) noun() string { return kinds[k.base()].noun }

// shortens reports whether `discover.files` is short for parent.discover.output.files.
func (k Kind) shortens() bool { return kinds[k.base()].shortens }

// variables returns the variables that the expression sees.
func (k Kind) variables() []string {
	names := slices.Clone(kinds[k.base()].variables)
	if k.isInFinally() && names[0] == parentVariable {
		names = slices.Insert(names, 1, tasksVariable, runVariable)
	}
	return names
}

func (k Kind) sees(variable string) bool { return slices.Contains(k.variables(), variable) }

// doing returns the name of the operation for errors of an evaluation.
func (k Kind) doing() string {
	return "evaluate " + strings.TrimPrefix(k.noun(), "a ")
}

// errorf returns the error of an evaluation. For a condition, Evaluate adds the expression.
func (k Kind) errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if k.base() == Condition {
		return err
	}
	return fmt.Errorf("%s: %w", k.doing(), err)
}

// visible lists the variables for people.
func (k Kind) visible() string {
	names := k.variables()
	for i, name := range names {
		if k.readsTasks(name) {
			names[i] += ".<task>"
		}
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// takes reports whether a value of a statically known type may be valid for the kind.
func (k Kind) takes(t *cel.Type) bool {
	return t.Kind() == types.DynKind || t.Kind() == types.AnyKind || slices.Contains(kinds[k.base()].types, t.Kind())
}

// wanted returns a description of the values that are valid for the kind.
func (k Kind) wanted() string { return k.noun() + " must be " + kinds[k.base()].values }

// typeHint returns a hint for converting a value of a wrong type.
func (k Kind) typeHint(t *cel.Type) string {
	switch t.Kind() {
	case cel.StructKind:
		field := "state"
		if t.TypeName() == workflowTypeName {
			field = "name"
		}
		return "choose one of its fields, for instance the " + t.TypeName() + "'s " + field
	case cel.StringKind:
		switch k.base() {
		case Count:
			return "int(x.trim()) reads a number from text"
		case Items:
			return "lines(x) makes a list of its lines, json(x) reads a list from JSON"
		}
		return "compare it: x != ''"
	case cel.IntKind, cel.DoubleKind, cel.UintKind:
		if k.base() == Items {
			return "for a number of instances, use `parallel`"
		}
		return "compare it: x == 0"
	case cel.ListKind, cel.MapKind:
		if k.base() == Count {
			return "its length is size(x); `foreach` starts an instance per item"
		}
		if k.base() == Items {
			return "x.map(key, key) is the list of its keys"
		}
		return "compare it: size(x) > 0"
	}
	return ""
}

// blank returns the error for a missing expression, or nil if the kind allows it.
func (k Kind) blank(expr string) error {
	if k.base() == Condition || k.base() == Retry || k == Notify {
		return nil
	}
	return errorAt(expr, 0, "", "there is no expression")
}
