package condition

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	environment "github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"

	"switchyard/workflows/structs"
)

// language is CEL with the functions of expressions and the variables of all kinds. Variables that a kind does not see are
// refused before CEL checks the expression. A language is immutable and safe for concurrent use.
type language struct {
	env   *cel.Env
	model *model
	// calls holds the implementations of CEL's functions by overload and, for arguments without a static type, by function.
	calls map[string]*functions.Overload
	// textCalls holds the overloads of the functions that ext.Strings adds, by function. That library has a cost model of its
	// own, which is not used.
	textCalls map[string][]string
	// functions and methods are the sorted names that expressions may call.
	functions, methods []string
}

// theLanguage returns the language, which is created once per process: creation takes milliseconds, and it has neither settings
// nor state.
var theLanguage = sync.OnceValues(newLanguage)

func newLanguage() (*language, error) {
	m, err := newModel()
	if err != nil {
		return nil, err
	}
	env, err := cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(environment.NewLibrarySubset().AddExcludedFunctions(
			environment.NewFunction(overloads.TypeConvertString, environment.NewOverload(overloads.DoubleToString, nil, nil)),
		))),
		textOfNumber(),
		cel.CustomTypeProvider(m),
		cel.CustomTypeAdapter(m),
		cel.Variable(parentVariable, cel.MapType(cel.StringType, m.task)),
		cel.Variable(tasksVariable, cel.MapType(cel.StringType, m.task)),
		cel.Variable(runVariable, m.run),
		cel.Variable(workflowVariable, m.workflow),
		cel.Variable(inputVariable, cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable(attemptVariable, m.attempt),
		cel.Variable(runVariable, m.run),
		cel.Variable(eventVariable, cel.StringType),
		cel.Variable(taskVariable, cel.StringType),
		cel.CrossTypeNumericComparisons(true),
		cel.EagerlyValidateDeclarations(true),
		ext.Strings(),
		ext.Math(),
		listContains(),
		jsonOfText(m),
		linesOfText(m),
		cel.ASTValidators(cel.ValidateTimestampLiterals(), cel.ValidateDurationLiterals()),
		cel.ParserRecursionLimit(maxDepth),
		cel.ParserErrorRecoveryLimit(maxErrorRecovery),
		cel.ParserExpressionSizeLimit(2*maxLength),
		cel.ExpressionNodeLimit(maxNodes),
	)
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	l := &language{env: env, model: m, calls: make(map[string]*functions.Overload), textCalls: make(map[string][]string)}
	for name, function := range env.Functions() {
		bindings, err := function.Bindings()
		if err != nil {
			return nil, fmt.Errorf("set up CEL function %s: %w", name, err)
		}
		for _, binding := range bindings {
			l.calls[binding.Operator] = binding
		}
	}
	l.nameFunctions()
	for _, name := range textFunctions() {
		for _, overload := range env.Functions()[name].OverloadDecls() {
			l.textCalls[name] = append(l.textCalls[name], overload.ID())
		}
	}
	return l, nil
}

// textFunctions returns the functions of ext.Strings.
func textFunctions() []string {
	return []string{
		"charAt", "format", "indexOf", "join", "lastIndexOf", "lowerAscii", "replace", "reverse", "split",
		"strings.quote", "substring", "trim", "upperAscii",
	}
}

// textOfNumber makes string(x) write a number as templates do: string(1000000.0) is 1000000, not 1e+06, because every number of an input
// or an output is a double.
func textOfNumber() cel.EnvOption {
	return cel.Function(overloads.TypeConvertString, cel.Overload(overloads.DoubleToString, []*cel.Type{cel.DoubleType}, cel.StringType,
		cel.UnaryBinding(func(x ref.Val) ref.Val {
			number, ok := x.(types.Double)
			if !ok {
				return types.MaybeNoSuchOverloadErr(x)
			}
			return types.String(structs.Number(float64(number)))
		})))
}

// listContains extends contains() to lists, because JavaScript's .includes( becomes contains() and searches both texts and
// lists.
func listContains() cel.EnvOption {
	element := cel.TypeParamType("T")
	return cel.Function(overloads.Contains, cel.MemberOverload("list_contains",
		[]*cel.Type{cel.ListType(element), element}, cel.BoolType,
		cel.BinaryBinding(func(list, value ref.Val) ref.Val {
			container, ok := list.(traits.Container)
			if !ok {
				return types.MaybeNoSuchOverloadErr(list)
			}
			return container.Contains(value)
		})))
}
