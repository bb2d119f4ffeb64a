package condition

import (
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Rates at which one unit of cost buys work. CEL's own model charges a search
// by the lengths of text and needle multiplied, and an unknown function nothing;
// this one follows what the functions do, so that it neither stops an honest
// search through 64 KiB nor lets a hostile one through. On the machines that it
// was measured on a unit is worth 0.1 to 1 µs, whatever it is spent on.
const (
	scanRate    = 100 // bytes that are only looked at: contains, startsWith, ==
	copyRate    = 10  // bytes that are copied or taken apart: +, split, lowerAscii
	elementRate = 4   // elements that are compared or made
	matchRate   = 128 // bytes of text times instructions of a regular expression
	compareRate = 1000
)

// callCost is what one call costs, at most: it is called before the call, which
// is refused when it alone is beyond the limit, and after it, to be added up.
func (p *program) callCost(function, overload string, args []ref.Val) uint64 {
	switch function {
	case operators.Equals, operators.NotEquals:
		return compareCost(args)
	case operators.Index:
		return 1
	case operators.Add:
		return addCost(args)
	case operators.In:
		// Elements of a list are compared one by one; a map is looked up.
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
	case "replace":
		return 1 + weighed(copyRate, args...) + grownBy(args)/copyRate
	case "join":
		joints := uint64(0)
		if len(args) == 2 {
			joints = uint64(length(args[0])) * uint64(length(args[1])) / copyRate
		}
		return 1 + weighed(copyRate, args...) + joints
	case "indexOf", "lastIndexOf":
		// A naive search: every place of the text, every character of the needle.
		return 1 + weighed(copyRate, args...) + uint64(length(args[0]))*uint64(length(args[1]))/compareRate
	case overloads.TimeGetFullYear, overloads.TimeGetMonth, overloads.TimeGetDate, overloads.TimeGetHours,
		overloads.TimeGetMinutes, overloads.TimeGetSeconds, overloads.TimeGetMilliseconds,
		overloads.TimeGetDayOfMonth, overloads.TimeGetDayOfWeek, overloads.TimeGetDayOfYear:
		// With a time zone, which is read from the disk each time.
		return 1 + uint64(len(args)-1)*200
	}
	return 1 + weighed(copyRate, args...)
}

// weighed is the cost of walking all of the values.
func weighed(rate int, values ...ref.Val) uint64 {
	w := weight{bound: elementRate * costLimit}
	for _, value := range values {
		w.add(value)
	}
	return uint64(w.bytes/rate + w.elements/elementRate)
}

// compareCost is bounded by the lighter side: a comparison goes no further than
// both reach.
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

// addCost is that of copying text. Lists are put together without copying, but
// charged so that they cannot double without end. The list that a loop builds up
// is appended to in place.
func addCost(args []ref.Val) uint64 {
	switch args[0].(type) {
	case traits.MutableLister:
		return 1
	case types.String, types.Bytes, traits.Lister:
		return 1 + uint64(length(args[0])+length(args[1]))/copyRate
	}
	return 1
}

// pieces is how many a split makes.
func pieces(args []ref.Val) uint64 {
	text, separator, ok := twoStrings(args)
	if !ok {
		return 0
	}
	return uint64(strings.Count(text, separator) + 1)
}

// grownBy is how many bytes longer a replacement makes a text.
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
