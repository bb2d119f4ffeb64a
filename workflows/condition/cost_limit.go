package condition

import (
	"fmt"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// costLimit is the maximum cost of one evaluation. See callCost for the unit.
const costLimit = 100_000

// guard adds a cost check before calls that may do a lot of work in one step. The cost tracker checks only after a call, and
// the interrupt only between iterations, which is too late for a single call that takes minutes or all of the memory.
func (p *program) guard(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := step.(interpreter.InterpretableCall)
	if !ok {
		return step, nil
	}
	function, overload := call.Function(), call.OverloadID()
	var do functions.FunctionOp
	switch function {
	case operators.Equals:
		do = func(args ...ref.Val) ref.Val { return equal(args[0], args[1]) }
	case operators.NotEquals:
		do = func(args ...ref.Val) ref.Val { return types.Bool(equal(args[0], args[1]) != types.True) }
	case overloads.Matches:
		do = p.matches
		if _, written := call.Args()[1].(interpreter.InterpretableConst); !written {
			overload = dynamicMatch
		}
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo,
		operators.In, overloads.Contains, "split", "replace", "join", "indexOf", "lastIndexOf", "format", jsonFunction, linesFunction,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, leastFunction, greatestFunction,
		overloads.TypeConvertInt, overloads.TypeConvertUint, overloads.TypeConvertDouble:
		implementation := p.calls[overload]
		if implementation == nil {
			implementation = p.calls[function]
		}
		if implementation == nil {
			return nil, fmt.Errorf("no implementation of %s", function)
		}
		do = func(args ...ref.Val) ref.Val { return invoke(function, implementation, args) }
		byType := func(args ...ref.Val) ref.Val { return invoke(function, p.calls[function], args) }
		switch function {
		case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
			do = arithmetic(function, do)
		case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
			do = ordering(do, byType)
		case leastFunction, greatestFunction:
			do = extreme(p.model, byType)
		case operators.In:
			do = search(1, 0, do)
		case overloads.Contains:
			do = search(0, 1, do)
		case overloads.TypeConvertInt, overloads.TypeConvertUint, overloads.TypeConvertDouble:
			do = conversion(function, do)
		case "format":
			do = formatting(do)
		}
	default:
		return step, nil
	}
	guarded := func(args ...ref.Val) ref.Val {
		if p.callCost(function, overload, args) > costLimit {
			// CEL's own tracker ends an evaluation with this panic. A value of type error would not end it: `error || true` is
			// true.
			panic(interpreter.EvalCancelledError{
				Cause:   interpreter.CostLimitExceeded,
				Message: "operation cancelled: actual cost limit exceeded",
			})
		}
		return do(args...)
	}
	return interpreter.NewCall(call.ID(), function, overload, call.Args(), guarded), nil
}

// invoke calls an implementation in the same way as CEL's interpreter.
func invoke(function string, o *functions.Overload, args []ref.Val) ref.Val {
	if o.OperandTrait != 0 && !args[0].Type().HasTrait(o.OperandTrait) {
		return types.NewErr("no such overload: %s", function)
	}
	switch {
	case len(args) == 1 && o.Unary != nil:
		return o.Unary(args[0])
	case len(args) == 2 && o.Binary != nil:
		return o.Binary(args[0], args[1])
	case o.Function != nil:
		return o.Function(args...)
	}
	return types.NewErr("no such overload: %s", function)
}
