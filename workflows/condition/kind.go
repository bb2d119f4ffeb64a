package condition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
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
)

// These are the names of the variables.
const (
	parentVariable   = "parent"
	workflowVariable = "workflow"
	inputVariable    = "input"
	attemptVariable  = "attempt"
)

// isVariableName reports whether a name is a variable of some kind, so that it is never short for a task.
func isVariableName(name string) bool {
	switch name {
	case parentVariable, workflowVariable, inputVariable, attemptVariable:
		return true
	}
	return false
}

// variables returns the variables that an expression of the kind sees.
func (k Kind) variables() []string {
	switch k {
	case Retry:
		return []string{attemptVariable, workflowVariable}
	case CacheKey, Value:
		return []string{parentVariable, workflowVariable, inputVariable}
	}
	return []string{parentVariable, workflowVariable}
}

func (k Kind) sees(variable string) bool { return slices.Contains(k.variables(), variable) }

// shortens reports whether `discover.files` is short for parent.discover.output.files.
func (k Kind) shortens() bool {
	switch k {
	case Count, Items, CacheKey, Value:
		return true
	}
	return false
}

// noun returns the name for an expression of the kind in messages.
func (k Kind) noun() string {
	switch k {
	case Count:
		return "parallel"
	case Items:
		return "foreach"
	case CacheKey:
		return "a cache key"
	case Retry:
		return "retry.when"
	case Value:
		return "a template"
	}
	return "a condition"
}

// doing returns the name of the operation for errors of an evaluation.
func (k Kind) doing() string {
	return "evaluate " + strings.TrimPrefix(k.noun(), "a ")
}

// errorf returns the error of an evaluation. For a condition, Evaluate adds the expression.
func (k Kind) errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if k == Condition {
		return err
	}
	return fmt.Errorf("%s: %w", k.doing(), err)
}

// visible lists the variables for people.
func (k Kind) visible() string {
	names := k.variables()
	if names[0] == parentVariable {
		names[0] = parentVariable + ".<task>"
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// takes reports whether a value of a statically known type may be valid for the kind.
func (k Kind) takes(t *cel.Type) bool {
	switch t.Kind() {
	case cel.DynKind, cel.AnyKind:
		return true
	case cel.BoolKind:
		return k != Count && k != Items
	case cel.IntKind, cel.UintKind, cel.DoubleKind:
		return k == Count || k == CacheKey || k == Value
	case cel.ListKind:
		return k == Items || k == CacheKey || k == Value
	case cel.StringKind, cel.BytesKind, cel.MapKind, cel.TimestampKind, cel.DurationKind:
		return k == CacheKey || k == Value
	case cel.NullTypeKind:
		return k == Value
	}
	return false
}

// wanted returns a description of the values that are valid for the kind.
func (k Kind) wanted() string {
	switch k {
	case Count:
		return "parallel must be an integer"
	case Items:
		return "foreach must be a list"
	case CacheKey:
		return "a cache key must be text, a number, true or false, a list or a map"
	case Retry:
		return "retry.when must be true or false"
	case Value:
		return "a template must be text, a number, true or false, a list, a map or null"
	}
	return "a condition must be true or false"
}

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
		switch k {
		case Count:
			return "int(x.trim()) reads a number from text"
		case Items:
			return "lines(x) makes a list of its lines, json(x) reads a list from JSON"
		}
		return "compare it: x != ''"
	case cel.IntKind, cel.DoubleKind, cel.UintKind:
		if k == Items {
			return "for a number of instances, use `parallel`"
		}
		return "compare it: x == 0"
	case cel.ListKind, cel.MapKind:
		if k == Count {
			return "its length is size(x); `foreach` starts an instance per item"
		}
		if k == Items {
			return "x.map(key, key) is the list of its keys"
		}
		return "compare it: size(x) > 0"
	}
	return ""
}

// blank returns the error for a missing expression, or nil if the kind allows it.
func (k Kind) blank(expr string) error {
	if k == Condition || k == Retry {
		return nil
	}
	return errorAt(expr, 0, "", "there is no expression")
}
