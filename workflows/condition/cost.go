package condition

import (
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// These rates say how much work one unit of cost pays for. CEL's own model charges a search by the product of text and needle
// lengths, and an unknown function nothing. This model follows what the functions actually do, so that it neither stops an
// honest search through 64 KiB nor admits a hostile one. On the machines where it was measured, a unit is worth 0.1 to 1 µs for
// any kind of work.
const (
	scanRate    = 100 // bytes that are only read: contains, startsWith, ==
	copyRate    = 10  // bytes that are copied or split: +, split, lowerAscii
	elementRate = 4   // elements that are compared or created
	matchRate   = 128 // bytes of text times instructions of a regular expression
	compareRate = 1000
)

// callCost returns the maximum cost of one call. It is called before the call, to refuse a call that alone exceeds the limit,
// and after the call, to add up the cost.
func (p *program) callCost(function, overload string, args []ref.Val) uint64 {
	switch function {
	case operators.Equals, operators.NotEquals:
		return compareCost(args)
	case operators.Index:
		return 1
	case operators.Add:
		return addCost(args)
	case operators.In:
		// The elements of a list are compared one by one; a map is looked up.
		if list, ok := args[1].(traits.Lister); ok {
			return 1 + weighed(scanRate, list)
		}
		return 1 + weighed(scanRate, args[0])
	case overloads.Contains:
		return 1 + weighed(scanRate, args...)
	case overloads.Size:
		return 1 + uint64(length(args[0]))/scanRate
	case overloads.StartsWith, overloads.EndsWith:
		return 1 + uint64(length(args[1]))/scanRate
	case overloads.Matches:
		return p.matchCost(overload, args)
	case "split":
		return 1 + weighed(copyRate, args...) + pieces(args)/elementRate
	case linesFunction:
		text, _ := args[0].(types.String)
		return 1 + weighed(copyRate, args...) + uint64(strings.Count(string(text), "\n"))/elementRate
	case "replace":
		return 1 + weighed(copyRate, args...) + grownBy(args)/copyRate
	case "join":
		joints := uint64(0)
		if len(args) == 2 {
			joints = uint64(length(args[0])) * uint64(length(args[1])) / copyRate
		}
		return 1 + weighed(copyRate, args...) + joints
	case "indexOf", "lastIndexOf":
		// A naive search compares every position of the text with every character of the needle.
		return 1 + weighed(copyRate, args...) + uint64(length(args[0]))*uint64(length(args[1]))/compareRate
	case overloads.TimeGetFullYear, overloads.TimeGetMonth, overloads.TimeGetDate, overloads.TimeGetHours,
		overloads.TimeGetMinutes, overloads.TimeGetSeconds, overloads.TimeGetMilliseconds,
		overloads.TimeGetDayOfMonth, overloads.TimeGetDayOfWeek, overloads.TimeGetDayOfYear:
		// With a time zone, which is read from disk each time.
		return 1 + uint64(len(args)-1)*200
	}
	return 1 + weighed(copyRate, args...)
}

// weighed returns the cost of walking all values.
func weighed(rate int, values ...ref.Val) uint64 {
	w := weight{bound: elementRate * costLimit}
	for _, value := range values {
		w.add(value)
	}
	return uint64(w.bytes/rate + w.elements/elementRate)
}

// compareCost returns the cost of a comparison. The lighter side bounds it, because a comparison stops where the shorter value
// ends.
func compareCost(args []ref.Val) uint64 {
	if !isLong(args[0]) || !isLong(args[1]) {
		return 1
	}
	return 1 + min(weighed(scanRate, args[0]), weighed(scanRate, args[1]))
}

func isLong(value ref.Val) bool {
	switch value.(type) {
	case types.String, types.Bytes, traits.Lister, traits.Mapper:
		return true
	}
	return false
}

// addCost returns the cost of copying text. Lists are joined without copying, but charged nevertheless so that they cannot
// double without limit. The list that a loop builds is appended to in place.
func addCost(args []ref.Val) uint64 {
	switch args[0].(type) {
	case traits.MutableLister:
		return 1
	case types.String, types.Bytes, traits.Lister:
		return 1 + uint64(length(args[0])+length(args[1]))/copyRate
	}
	return 1
}

// pieces returns the number of pieces that a split makes.
func pieces(args []ref.Val) uint64 {
	text, separator, ok := twoStrings(args)
	if !ok {
		return 0
	}
	return uint64(strings.Count(text, separator) + 1)
}

// grownBy returns how many bytes a replacement adds to a text.
func grownBy(args []ref.Val) uint64 {
	text, old, ok := twoStrings(args)
	if !ok || len(args) < 3 {
		return 0
	}
	return uint64(strings.Count(text, old)) * uint64(max(length(args[2])-len(old), 0))
}

func twoStrings(args []ref.Val) (first, second string, ok bool) {
	if len(args) < 2 {
		return "", "", false
	}
	a, okA := args[0].(types.String)
	b, okB := args[1].(types.String)
	return string(a), string(b), okA && okB
}
