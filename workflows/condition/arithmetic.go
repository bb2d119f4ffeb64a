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
// and % accepts doubles that are whole.
func arithmetic(function string, do func(args ...ref.Val) ref.Val) func(args ...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val {
		if a, b, ok := alike(function, args[0], args[1]); ok {
			return do(a, b)
		}
		return do(args...)
	}
}

func isArithmetic(function string) bool {
	switch function {
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		return true
	}
	return false
}

// alike converts two numbers to a common type that an operator accepts. It returns false if they already have one type, or if
// they are not numbers.
func alike(function string, a, b ref.Val) (ref.Val, ref.Val, bool) {
	x, one := a.(types.Double)
	y, other := b.(types.Double)
	if function == operators.Modulo && (one || other) {
		a, oneWhole := whole(a)
		b, otherWhole := whole(b)
		return a, b, oneWhole && otherWhole
	}
	switch {
	case one == other:
		return nil, nil, false
	case one:
		y, other = double(b)
	default:
		x, one = double(a)
	}
	return x, y, one && other
}

// double converts an integer to a double, unless that would change it.
func double(v ref.Val) (types.Double, bool) {
	switch v := v.(type) {
	case types.Int:
		return types.Double(v), -maxWhole <= v && v <= maxWhole
	case types.Uint:
		return types.Double(v), v <= maxWhole
	}
	return 0, false
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
