package condition

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestRewriteKeepsPositionsAndLiterals checks that everything that is not rewritten keeps its position, and that literals stay
// unchanged.
func TestRewriteKeepsPositionsAndLiterals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := expressions().Draw(t, "expression")
		s, problem := rewrite(expr, Condition)
		if problem != nil {
			return
		}
		if len(s.origin) != len(s.cel) {
			t.Fatalf("%d places for %d bytes", len(s.origin), len(s.cel))
		}
		line, column := 1, 0
		for i, r := range s.cel {
			if got := s.offsetOf(line, column); got != s.origin[i] {
				t.Fatalf("%d:%d of %q comes from %d, not %d", line, column, s.cel, s.origin[i], got)
			}
			if r == '\n' {
				line, column = line+1, 0
			} else {
				column++
			}
		}
		if !strings.Contains(expr, "=") && !strings.Contains(expr, "includes") && !strings.Contains(expr, "/") && s.cel != expr {
			t.Fatalf("%q became %q", expr, s.cel)
		}
	})
}

// expressions generates pieces of CEL and JavaScript in any order.
func expressions() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"parent", ".", "build", "exitCode", "===", "!==", "==", "!", "=", "&&", "(", ")", "[", "]", "{", "}", "'", "\"", "'''",
		"\\", " ", "\n", "//", "/", "/a/", "/[/]/i", ".test(", ".includes(", "1", "1.5", "-", "é", "𝄞", "r'\\'", "b\"x\"", "in", "?", ":",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
	})
}
