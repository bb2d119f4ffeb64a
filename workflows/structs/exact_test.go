package structs

import (
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckJSONNamesThePlaceOfWhatWouldChange(t *testing.T) {
	for text, want := range map[string]string{
		`{"id": 9007199254740993}`:                    "id: 9007199254740993 cannot be kept exactly: it would become 9007199254740992; write it as a string, in quotes",
		`{"a": {"ids": [1, 1234567890123456789]}}`:    "a.ids[1]: 1234567890123456789 cannot be kept exactly: it would become 1234567890123456800",
		`[{"x": "9"}, {"neg": -9007199254740995}]`:    "[1].neg: -9007199254740995 cannot",
		`9007199254740993`:                            "9007199254740993 cannot",
		`{"dec": 9007199254740993.0}`:                 "dec: 9007199254740993.0 cannot",
		`{"dec": 90071992547409930e-1}`:               "dec: 90071992547409930e-1 cannot",
		`{"half": 9007199254740992.5}`:                "half: 9007199254740992.5 cannot",
		`{"power": 1152921504606846976}`:              "power: 1152921504606846976 cannot", // 2^60 would be printed with other digits
		`{"e": 1e400}`:                                "e: 1e400 is out of the range",
		`{"e": -1e400}`:                               "e: -1e400 is out of the range",
		`{"tiny": 1e-400}`:                            "tiny: 1e-400 is out of the range",
		`{"a": 1, "b": {"c": 1, "c": 2}}`:             "b.c: duplicate key",
		strings.Repeat("[", 101):                      "nests more than 100 levels",
		`{"first": [{}, [], null, 1e999]}`:            "first[3]: 1e999 is out of the range",
		`{"a b": {"c": 18446744073709551615}}`:        "a b.c: 18446744073709551615 cannot",
		`{"n": 12345678901234567890123456789.000}`:    "n: 12345678901234567890123456789.000 cannot",
		`{"s": "9007199254740993", "s": 1, "n": "x"}`: "s: duplicate key",
	} {
		err := CheckJSON([]byte(text))
		if _, ok := errors.AsType[*Fault](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{
		"", "{", "oops", `{"a": 1} x`, `{"a": 9007199254740991, "b": 9007199254740992, "c": -9007199254740992.0}`, "-0", "-0.0", "0e999999999999", "0.1",
		"0.12345678901234567890123", "1e23", "6.02214076e23", "1e21", "1000000000000000000", "1.5e18", "1.7976931348623157e308", "5e-324", `{"a": {"a": {"a": 1}}, "b": {"a": 2}}`,
		`{"s": "9007199254740993"}`, strings.Repeat("[", 100) + strings.Repeat("]", 100),
	} {
		if err := CheckJSON([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A number that passes is printed again with the value that it was written with, however it was written.
func TestNumbersThatPassComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?[1-9][0-9]{0,24}(\.[0-9]{1,3})?(e[0-9]{1,2})?`).Draw(t, "number")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		printed, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := new(big.Rat).SetString(text)
		after, _ := new(big.Rat).SetString(string(printed))
		isSmallFraction := !before.IsInt() && before.Cmp(big.NewRat(1<<53, 1)) < 0 && before.Cmp(big.NewRat(-1<<53, 1)) > 0
		if same, passes := before.Cmp(after) == 0, CheckNumber(text) == ""; !isSmallFraction && same != passes {
			t.Fatalf("%s is printed as %s, and CheckNumber says %q", text, printed, CheckNumber(text))
		}
	})
}
