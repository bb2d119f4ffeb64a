package condition

import "testing"

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
