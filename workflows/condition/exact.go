package condition

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"switchyard/workflows/structs"
)

// Up to maxWhole every whole number is a double. A larger double stands for the digits that JSON prints for it, as in data; see
// structs.CheckNumber. Where an expression would change these digits without a word, it is an error.

// isSmall reports whether a double is below maxWhole.
func isSmall(d types.Double) bool { return -maxWhole < d && d < maxWhole }

// isInteger reports whether a double is a whole number.
func isInteger(d types.Double) bool {
	return math.Trunc(float64(d)) == float64(d) && !math.IsInf(float64(d), 0)
}

// digits returns a whole number exactly, or nil for other values.
func digits(v ref.Val) *big.Int {
	switch v := v.(type) {
	case types.Int:
		return big.NewInt(int64(v))
	case types.Uint:
		return new(big.Int).SetUint64(uint64(v))
	case types.Double:
		if isInteger(v) {
			n, _ := new(big.Int).SetString(strconv.FormatFloat(float64(v), 'f', -1, 64), 10)
			return n
		}
	}
	return nil
}

// exactly returns a large double as the integer whose digits it stands for, and other values unchanged.
func exactly(v ref.Val) ref.Val {
	d, ok := v.(types.Double)
	if !ok || isSmall(d) || math.Abs(float64(d)) > math.MaxUint64 {
		return v
	}
	switch n := digits(d); {
	case n == nil:
	case n.IsInt64():
		return types.Int(n.Int64())
	case n.IsUint64():
		return types.Uint(n.Uint64())
	}
	return v
}

// inexact returns why an integer cannot be kept as a double, or "" if it can.
func inexact(v ref.Val) string {
	if d, ok := double(v); !ok || isDouble(v) || isSmall(d) {
		return ""
	}
	return reasonFor(digits(v).String())
}

// reasonFor returns why the digits of a number cannot be kept, or "" if they can.
func reasonFor(text string) string {
	reason, _, _ := strings.Cut(structs.CheckNumber(text), ";")
	if reason != "" && len(text) > maxShown {
		return fmt.Sprintf("a number cannot keep %d digits", len(text))
	}
	return reason
}

// exactResult returns the result of an operation with a double, or an error if both operands are whole and the result is not
// exact. nearest is the result that CEL computes.
func exactResult(function string, a, b ref.Val, nearest types.Double) ref.Val {
	x, y := digits(a), digits(b)
	if x == nil || y == nil || function == operators.Divide {
		for _, operand := range []ref.Val{a, b} {
			if reason := inexact(operand); reason != "" {
				return inexactErr(function, a, b, reason, "; use int(x) on both sides")
			}
		}
		return nearest
	}
	result := new(big.Int)
	switch function {
	case operators.Add:
		result.Add(x, y)
	case operators.Subtract:
		result.Sub(x, y)
	default:
		result.Mul(x, y)
	}
	reason := reasonFor(result.String())
	if reason == "" {
		made, _ := result.Float64()
		return types.Double(made)
	}
	remedy := "; the result is too large for an int, too"
	if sign := operator(function); result.IsInt64() && x.IsInt64() && y.IsInt64() {
		remedy = "; int(x) " + sign + " int(y) is exact"
	}
	return inexactErr(function, a, b, reason, remedy)
}

func inexactErr(function string, a, b ref.Val, reason, remedy string) ref.Val {
	return types.NewErr("%s %s %s: %s%s", numberText(a), operator(function), numberText(b), reason, remedy)
}

// operator returns an operator as it is written: + for _+_.
func operator(function string) string { return strings.Trim(function, "_") }

func numberText(v ref.Val) string {
	if d, ok := v.(types.Double); ok {
		return structs.Number(float64(d))
	}
	return digits(v).String()
}

// conversion makes int(x) and uint(x) keep the digits of a large double, and double(x) refuse digits that a double changes.
func conversion(function string, do func(args ...ref.Val) ref.Val) func(args ...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val {
		if isDouble(args[0]) && function == overloads.TypeConvertInt {
			return exactly(args[0]).ConvertToType(types.IntType)
		}
		if isDouble(args[0]) && function == overloads.TypeConvertUint {
			return exactly(args[0]).ConvertToType(types.UintType)
		}
		result := do(args...)
		made, ok := result.(types.Double)
		if !ok || isSmall(made) {
			return result
		}
		reason := inexact(args[0])
		if text, isText := args[0].(types.String); isText && isInteger(made) {
			reason = reasonFor(string(text))
		}
		if reason != "" {
			return types.NewErr("double(x): %s; int(x) is exact up to %d", reason, math.MaxInt64)
		}
		return result
	}
}

// ordering makes the comparison of a large double with an integer exact. byType is for operands of any types.
func ordering(do, byType func(args ...ref.Val) ref.Val) func(args ...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val {
		if isDouble(args[0]) == isDouble(args[1]) {
			return do(args...)
		}
		return byType(exactly(args[0]), exactly(args[1]))
	}
}

// equal reports whether two values are equal, as types.Equal does, but compares a large double with an integer exactly.
func equal(a, b ref.Val) ref.Val {
	switch x := a.(type) {
	case types.Double, types.Int, types.Uint:
		return types.Equal(exactly(a), exactly(b))
	case traits.Lister:
		y, ok := b.(traits.Lister)
		if !ok || x.Size() != y.Size() {
			return types.False
		}
		for i, n := 0, length(x); i < n; i++ {
			if equal(x.Get(types.Int(i)), y.Get(types.Int(i))) == types.False {
				return types.False
			}
		}
		return types.True
	case traits.Mapper:
		y, ok := b.(traits.Mapper)
		if !ok || x.Size() != y.Size() {
			return types.False
		}
		for it := x.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			other, found := y.Find(key)
			if !found || equal(x.Get(key), other) == types.False {
				return types.False
			}
		}
		return types.True
	}
	return types.Equal(a, b)
}

// search makes in and contains() compare as equal does. list and value are the positions of the two arguments.
func search(list, value int, do func(args ...ref.Val) ref.Val) func(args ...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val {
		elements, ok := args[list].(traits.Lister)
		if !ok {
			return do(args...)
		}
		for i, n := 0, length(elements); i < n; i++ {
			if equal(args[value], elements.Get(types.Int(i))) == types.True {
				return types.True
			}
		}
		return types.False
	}
}

// These functions are what the macros math.least and math.greatest call.
const (
	leastFunction    = "math.@min"
	greatestFunction = "math.@max"
)

// extreme makes math.greatest and math.least compare large numbers of different types exactly.
func extreme(l types.Adapter, byType func(args ...ref.Val) ref.Val) func(args ...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val {
		numbers := args
		if list, ok := args[0].(traits.Lister); ok {
			numbers = make([]ref.Val, length(list))
			for i := range numbers {
				numbers[i] = list.Get(types.Int(i))
			}
		}
		exact := make([]ref.Val, len(numbers))
		for i, number := range numbers {
			exact[i] = exactly(number)
		}
		result := byType(types.NewRefValList(l, exact))
		for i, number := range numbers {
			if isDouble(number) && exact[i] == result {
				return number
			}
		}
		return result
	}
}

// clause matches a clause of format().
var clause = regexp.MustCompile(`%(?:\.[0-9]+)?(.)`)

// formatting makes format() refuse to change the digits of a large number that %f prints.
func formatting(do func(args ...ref.Val) ref.Val) func(args ...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val {
		text, isText := args[0].(types.String)
		list, isList := args[1].(traits.Lister)
		if !isText || !isList || !strings.Contains(string(text), "f") {
			return do(args...)
		}
		next := 0
		for _, found := range clause.FindAllStringSubmatch(string(text), -1) {
			if found[1] == "%" {
				continue
			}
			if next >= length(list) {
				break
			}
			number := list.Get(types.Int(next))
			next++
			nearest, ok := double(number)
			if found[1] != "f" || !ok || isSmall(nearest) || (isDouble(number) && !isInteger(nearest)) {
				continue
			}
			if exact := digits(number).String(); exact != strconv.FormatFloat(float64(nearest), 'f', 0, 64) {
				return types.NewErr("format: %%f would change the digits of %s; write %%s", exact)
			}
		}
		return do(args...)
	}
}
