package condition

import (
	"maps"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
)

// large returns a view with numbers at and above 2^53, as a program may print them.
func large(t *testing.T) View {
	view := sample(t)
	output := view.Parents["build"].GetResult().GetOutput()
	maps.Copy(output.Fields, map[string]*structpb.Value{
		"h": structpb.NewNumberValue(94906267), "m": structpb.NewNumberValue(1<<53 - 1), "p": structpb.NewNumberValue(1 << 53),
		"q": structpb.NewNumberValue(1234567890123456800), // as a double 1234567890123456768
		"z": structpb.NewNumberValue(1e300), "top": structpb.NewNumberValue(1 << 63),
		"ids": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewNumberValue(1 << 53)}}),
	})
	return view
}

func inOutput(expr string) string { return strings.ReplaceAll(expr, "$", "parent.build.output.") }

func TestResultsOfExpressionsAreExact(t *testing.T) {
	t.Parallel()
	view := large(t)
	for expr, want := range map[string]string{
		"$m + 1":                    "9007199254740992",
		"$m + 3":                    "9007199254740994",
		"$m - $m":                   "0",
		"int($m) + 2":               "9007199254740993",
		"int($h) * int($h)":         "9007199515875289",
		"int($m) + $count":          "9007199254740994",
		"$count + 9007199254740993": "9007199254740996",
		"$p * 2.0":                  "18014398509481984",
		"-$p":                       "-9007199254740992",
		"$p / 2":                    "4503599627370496",
		"$p + 0.5":                  "9007199254740992",
		"$m * $ratio":               "4503599627370495.5",
		"1000000000000000.0 * 1000000000000000.0":  "1e+30",
		"$q - 1234567890123456000":                 "800",
		"int($q)":                                  "1234567890123456800",
		"uint($q)":                                 "1234567890123456800",
		"string($q)":                               "1234567890123456800",
		"'%d'.format([9007199254740993])":          "9007199254740993",
		"'%s %d'.format([$q, $q])":                 "1234567890123456800 1234567890123456800",
		"'%.0f'.format([$p])":                      "9007199254740992",
		"'%.1f%%'.format([$ratio])":                "0.5%",
		"double(9007199254740992)":                 "9007199254740992",
		"double('0.1')":                            "0.1",
		"math.greatest(9007199254740993, $p)":      "9007199254740993",
		"math.greatest($p, 9007199254740993)":      "9007199254740993",
		"math.least([9007199254740993, $p])":       "9007199254740992",
		"math.greatest($p, 1)":                     "9007199254740992",
		"math.greatest([dyn(1), 2.5])":             "2.5",
		"math.greatest($q, $p)":                    "1234567890123456800",
		"math.abs($q)":                             "1234567890123456800",
		"math.least(3, 2)":                         "2",
		"$p == 9007199254740993":                   "false",
		"9007199254740993 != $p":                   "true",
		"$p < 9007199254740993":                    "true",
		"9007199254740993 <= $p":                   "false",
		"$p >= 9007199254740993":                   "false",
		"$p < 9007199254740992.0":                  "false",
		"9007199254740992 == $p":                   "true",
		"$q == 1234567890123456800":                "true",
		"$q == 1234567890123456768":                "false",
		"$top == 9223372036854775807":              "false",
		"$top > 9223372036854775807":               "true",
		"$z > 9223372036854775807":                 "true",
		"9007199254740993 in $ids":                 "false",
		"9007199254740992 in $ids":                 "true",
		"$ids.contains(9007199254740993)":          "false",
		"$ids.contains(9007199254740992)":          "true",
		"$ids == [9007199254740993]":               "false",
		"$ids == [9007199254740992]":               "true",
		"{'a': $ids} == {'a': [9007199254740993]}": "false",
		"{'a': $ids} == {'a': [9007199254740992]}": "true",
		"{'a': 1} == {'b': 1}":                     "false",
		"$ids == null":                             "false",
		"double('NaN') == 1.0":                     "false",
	} {
		got, err := NewEvaluator().Value(t.Context(), inOutput(expr), view)
		if err != nil || Text(got) != want {
			t.Errorf("%s is %s (%v), want %s", expr, Text(got), err, want)
		}
	}
}

func TestInexactResultsOfExpressionsAreErrors(t *testing.T) {
	t.Parallel()
	view := large(t)
	for expr, want := range map[string]string{
		"$m + 2":                                   "1:23: 9007199254740991 + 2: 9007199254740993 cannot be kept exactly: it would become 9007199254740992; int(x) + int(y) is exact",
		"2 + $m":                                   "2 + 9007199254740991: 9007199254740993 cannot",
		"-$m - 2":                                  "-9007199254740991 - 2: -9007199254740993 cannot",
		"$h * $h":                                  "94906267 * 94906267: 9007199515875289 cannot be kept exactly: it would become 9007199515875288; int(x) * int(y) is exact",
		"$m * 64":                                  "576460752303423424 cannot be kept exactly",
		"[$m, $m].map(x, x + 2)":                   "cannot be kept exactly",
		"$m * $m":                                  "81129638414606663681390495662081 cannot be kept exactly",
		"$z * $z":                                  "1e+300 * 1e+300: a number cannot keep 601 digits; the result is too large for an int, too",
		"$count + 9007199254740992":                "3 + 9007199254740992: 9007199254740995 cannot",
		"9007199254740993 / $count":                "9007199254740993 / 3: 9007199254740993 cannot",
		"9007199254740993 + $ratio":                "9007199254740993 + 0.5: 9007199254740993 cannot",
		"double(9007199254740993)":                 "double(x): 9007199254740993 cannot",
		"double(dyn(9007199254740993))":            "double(x): 9007199254740993 cannot",
		"double('9007199254740993')":               "double(x): 9007199254740993 cannot",
		"double(18446744073709551615u)":            "double(x): 18446744073709551615 cannot",
		"'%.0f'.format([9007199254740993])":        "format: %f would change the digits of 9007199254740993",
		"'%d%% %f'.format([1, $q])":                "format: %f would change the digits of 1234567890123456800",
		"int($top)":                                "overflow",
		"int($m) * int($m)":                        "overflow",
		"math.greatest(['a', 'b'].map(x, dyn(x)))": "no such overload",
	} {
		for _, kind := range []Kind{Value, CacheKey} {
			err := evaluateKind(t.Context(), NewEvaluator(), inOutput(expr), kind, view)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", expr, err, want)
			}
		}
	}
	if got, err := NewEvaluator().Evaluate(t.Context(), inOutput("$m + 2 == 9007199254740992"), view); got || err == nil {
		t.Errorf("the condition is %v, %v", got, err)
	}
}
