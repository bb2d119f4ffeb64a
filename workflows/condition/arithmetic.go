package condition

import (
	"math"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"switchyard/workflows/structs"
)

// arithmetic extends a CEL operator to two numbers of different types. A number in JSON is a double, and a number without a
// point in an expression is an int, so `parent.count.output.n + 1` is an error in plain CEL. An int and a double give a double,
// and % accepts doubles that are whole. Sums and products of whole numbers are exact or an error.
func arithmetic(function string, do func(args ...ref.Val) ref.Val) func(args ...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val {
		if !isDouble(args[0]) && !isDouble(args[1]) {
			return do(args...)
		}
		if function == operators.Modulo {
			a, one := whole(args[0])
			b, other := whole(args[1])
			if one && other {
				return do(a, b)
			}
			return do(args...)
		}
		x, one := double(args[0])
		y, other := double(args[1])
		if !one || !other {
			return do(args...)
		}
		operands := args
		if !isDouble(args[0]) || !isDouble(args[1]) {
			operands = []ref.Val{x, y}
		}
		result := do(operands...)
		if nearest, ok := result.(types.Double); ok && (!isSmall(x) || !isSmall(y) || !isSmall(nearest)) {
			return exactResult(function, args[0], args[1], nearest)
		}
		return result
	}
}

// double returns the double that is nearest to a number. It returns false for other values.
func double(v ref.Val) (types.Double, bool) {
	switch v := v.(type) {
	case types.Double:
		return v, true
	case types.Int:
		return types.Double(v), true
	case types.Uint:
		return types.Double(v), true
	}
	return 0, false
}

func isDouble(v ref.Val) bool {
	_, ok := v.(types.Double)
	return ok
}

// maxWhole is the limit up to which every whole number is a distinct double.
const maxWhole = 1 << 53

// findInexact returns the problem with a number of an expression that a double cannot hold, or nil.
func findInexact(expr string) *Error {
	for _, t := range tokenize(expr) {
		if t.kind != tokenNumber || !strings.Contains(t.text, ".") {
			continue
		}
		// A sign after the e is not a part of the token.
		if reason := structs.CheckNumber(strings.TrimRight(t.text, "eE")); reason != "" {
			message, _, _ := strings.Cut(reason, ";")
			return errorAt(expr, t.start, "leave out the point, or compare texts", "%s", message)
		}
	}
	return nil
}

func whole(v ref.Val) (ref.Val, bool) {
	switch v := v.(type) {
	case types.Int:
		return v, true
	case types.Double:
		if f := float64(v); math.Trunc(f) == f && math.Abs(f) <= maxWhole {
			return types.Int(f), true
		}
	}
	return nil, false
}
