package condition

import (
	"math"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// arithmetic is what CEL does for an operator, and besides it takes numbers of two
// types: a number of JSON is a double, and one that is written in an expression
// without a point is an int, so that in CEL alone `parent.count.output.n + 1` is an
// error. Whole and double give a double, and % takes doubles that are whole.
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

// alike makes two numbers ones of a type that an operator takes; not ok: they are
// of one type already, or no numbers.
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

func double(v ref.Val) (types.Double, bool) {
	switch v := v.(type) {
	case types.Int:
		return types.Double(v), true
	case types.Uint:
		return types.Double(v), true
	}
	return 0, false
}

// maxWhole is the largest double up to which each whole number is one.
const maxWhole = 1 << 53

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
