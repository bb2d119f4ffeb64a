package condition

import (
	"strings"
	"testing"
)

// TestArithmeticMixesJSONNumbersAndLiterals combines numbers from JSON, which are doubles, with numbers in an expression,
// which are not.
func TestArithmeticMixesJSONNumbersAndLiterals(t *testing.T) {
	for expr, want := range map[string]string{
		"parent.build.output.count + 1":                            "4",
		"1 + parent.build.output.count":                            "4",
		"parent.build.output.count - 1":                            "2",
		"2 * parent.build.output.count":                            "6",
		"parent.build.output.count / 2":                            "1.5",
		"parent.build.output.count % 2":                            "1",
		"7 % parent.build.output.count":                            "1",
		"parent.build.output.count % parent.build.output.count":    "0",
		"parent.build.output.ratio + 1":                            "1.5",
		"parent.test.exitCode * parent.build.output.ratio":         "1",
		"parent.build.output.count + 1.5":                          "4.5",
		"7 / 2":                                                    "3",
		"parent.build.output.text + '!'":                           "t!",
		"[1] + parent.build.output.files":                          `[1,"a.go","b.go"]`,
		"parent.build.output.files[parent.build.output.count - 2]": "b.go",
	} {
		got, err := NewEvaluator().Value(t.Context(), expr, sample(t))
		if err != nil || Text(got) != want {
			t.Errorf("%s is %s (%v), want %s", expr, Text(got), err, want)
		}
	}
}

func TestNumbersOfExpressionsAreExactOrRefused(t *testing.T) {
	for _, expr := range []string{"parent.build.output.count == 9007199254740993.0", "parent.build.output.count < 1 - 1234567890123456789.5e3"} {
		_, err := Check(expr, Scope{Kind: Condition, Ancestors: []string{"build"}})
		if err == nil || !strings.Contains(err.Error(), "cannot be kept exactly") {
			t.Errorf("%s: %v", expr, err)
		}
	}
	for expr, want := range map[string]string{"9007199254740993": "9007199254740993", "9007199254740992.0": "9007199254740992", "1.5e3": "1500", "2.5e-3": "0.0025"} {
		got, err := NewEvaluator().Value(t.Context(), expr, sample(t))
		if err != nil || Text(got) != want {
			t.Errorf("%s is %s (%v), want %s", expr, Text(got), err, want)
		}
	}
}
