package phrase

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Turn describes a turn of an agent and its cost. Zero tokens or a zero cost mean unknown.
func Turn(number int32, took time.Duration, in, out int64, costUSD float64, failure string) string {
	parts := []string{fmt.Sprintf("turn %d took %s", number, seconds(took))}
	if in > 0 || out > 0 {
		parts = append(parts, Tokens(in, out))
	}
	if costUSD > 0 {
		parts = append(parts, Dollars(costUSD))
	}
	return Because(strings.Join(parts, ", "), failure)
}

// ToolCall describes the call of a tool in a turn of an agent.
func ToolCall(tool string, turn int32, took time.Duration, failure string) string {
	return Because(fmt.Sprintf("%s in turn %d took %s", tool, turn, seconds(took)), failure)
}

// Tokens formats the number of tokens that a model has read and written.
func Tokens(in, out int64) string { return Number(in) + " tokens in, " + Number(out) + " out" }

// Dollars formats a sum of US dollars with cents; a sum below a cent is shown more exactly.
func Dollars(sum float64) string {
	switch {
	case sum > 0 && sum < 0.00005:
		return "under $0.0001"
	case sum > 0 && sum < 0.01:
		return fmt.Sprintf("$%.4f", sum)
	}
	return fmt.Sprintf("$%.2f", sum)
}

// Number formats a number with thousands separators, such as "48,200".
func Number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// seconds formats a duration in seconds with one decimal.
func seconds(took time.Duration) string { return fmt.Sprintf("%.1f s", max(took, 0).Seconds()) }
