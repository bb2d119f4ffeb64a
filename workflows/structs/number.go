package structs

import (
	"math"
	"strconv"
)

// Number formats a number as JSON does: without an exponent, unless the number is too large or too small for people to read its
// digits.
func Number(n float64) string {
	if size := math.Abs(n); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}
