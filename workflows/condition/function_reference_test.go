package condition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"switchyard/dev/golden"
)

// functionExamples has an example for each function of expressions, in groups, with its meaning.
var functionExamples = []struct {
	group    string
	examples [][2]string
}{
	{"Any values", [][2]string{
		{"has(workflow.context.stage)", "whether the key exists"},
		{"size('four')", "length of a text, a list or a map; also `x.size()`"},
		{"int('12') + int(1.9)", "a whole number from a text or a number, whose decimals are cut off"},
		{"uint('12')", "a whole number of 0 or more"},
		{"double('0.5')", "a number"},
		{"string(12)", "a text"},
		{"bool('true')", "`true` or `false` from a text"},
		{"bytes('ab').size()", "the bytes of a text"},
		{"dyn(1) == 1.0", "the same value, whose type is no longer checked. `[1, dyn('a')]` has items of different types"},
		{"type(1) == int", "the type of a value"},
	}},
	{"Lists and maps", [][2]string{
		{"[1, 2, 3].all(x, x > 0)", "whether a condition holds for each item of a list, or for each key of a map"},
		{"[1, 2, 3].exists(x, x > 2)", "whether it holds for at least one"},
		{"[1, 2, 3].exists_one(x, x > 2)", "whether it holds for exactly one"},
		{"[1, 2, 3].filter(x, x > 1)", "the items for which it holds"},
		{"[1, 2, 3].map(x, x * 10)", "a list of what an expression gives for each item"},
		{"['a', 'b'].contains('b')", "whether a list has an item"},
		{"['a', 'b'].join('-')", "a text of all items, with a separator between them"},
	}},
	{"Texts", [][2]string{
		{"'build-7'.contains('-')", "whether a text has a part"},
		{"'build-7'.startsWith('build')", "whether it begins with a part"},
		{"'build-7'.endsWith('7')", "whether it ends with a part"},
		{"'build-7'.matches('^[a-z]+-[0-9]$')", "whether a regular expression, in the syntax of RE2, matches a part of it"},
		{"'build-7'.indexOf('-')", "the place of a part, counted from 0, or -1"},
		{"'a-b-c'.lastIndexOf('-')", "the last place of a part"},
		{"'build'.charAt(0)", "the character at a place"},
		{"'build-7'.substring(6)", "the text from a place on, or between two places"},
		{"'build-7'.replace('-', ' ')", "the text with another part in place of each part"},
		{"'a,b'.split(',')", "the parts between separators, as a list"},
		{"' a '.trim()", "the text without blanks at its ends"},
		{"'Build'.lowerAscii()", "the text with the letters A to Z in lower case"},
		{"'Build'.upperAscii()", "the text with the letters a to z in upper case"},
		{"'abc'.reverse()", "the characters from last to first"},
		{"'%s of %d: %.1f%%'.format(['a', 2, 0.5])", "the text with values at its verbs, as in `printf`"},
		{"strings.quote('a \"b\"')", "the text in quotation marks, with special characters escaped"},
		{"lines('a\\nb\\n')", "the lines of a text without their ends, as a list; made for `foreach: lines(parent.find.stdout)`"},
		{"json('{\"hosts\": [\"a\", \"b\"]}').hosts", "what a text contains as JSON; made for `foreach: json(parent.list.stdout).hosts`"},
	}},
	{"Numbers", [][2]string{
		{"math.least(3, 1, 2)", "the smallest of several numbers, or of a list of them"},
		{"math.greatest(3, 1, 2)", "the largest"},
		{"math.abs(-2)", "the number without its sign"},
		{"math.sign(-2)", "-1, 0 or 1"},
		{"math.ceil(1.2)", "the next whole number up"},
		{"math.floor(1.8)", "the next whole number down"},
		{"math.round(1.5)", "the nearest whole number; a half goes away from 0"},
		{"math.trunc(-1.8)", "the number without its decimals"},
		{"math.sqrt(9)", "the square root"},
		{"math.isNaN(0.0)", "whether it is not a number"},
		{"math.isInf(1.0)", "whether it is infinite"},
		{"math.isFinite(1.0)", "whether it is neither"},
		{"math.bitAnd(6, 3)", "the bits that both have"},
		{"math.bitOr(6, 3)", "the bits that one of them has"},
		{"math.bitXor(6, 3)", "the bits that exactly one of them has"},
		{"math.bitNot(6)", "all bits inverted"},
		{"math.bitShiftLeft(1, 3)", "the bits moved to the left"},
		{"math.bitShiftRight(8, 2)", "the bits moved to the right"},
	}},
	{"Times", [][2]string{
		{"duration('90s') > duration('1m')", "a length of time"},
		{"string(timestamp('2026-02-28T23:30:00Z') + duration('1h'))", "a point in time"},
		{"timestamp('2026-02-28T23:30:00Z').getFullYear()", "the year. This and the functions below take a time zone, such as `'Europe/Berlin'`; without one it is UTC"},
		{"timestamp('2026-02-28T23:30:00Z').getMonth()", "the month, from 0"},
		{"timestamp('2026-02-28T23:30:00Z').getDate()", "the day of the month, from 1"},
		{"timestamp('2026-02-28T23:30:00Z').getDayOfMonth()", "the day of the month, from 0"},
		{"timestamp('2026-02-28T23:30:00Z').getDayOfWeek()", "the day of the week; Sunday is 0"},
		{"timestamp('2026-02-28T23:30:00Z').getDayOfYear()", "the day of the year, from 0"},
		{"timestamp('2026-02-28T23:30:00Z').getHours('Europe/Berlin')", "the hour; of a duration, all of it in hours"},
		{"timestamp('2026-02-28T23:30:00Z').getMinutes()", "the minute; of a duration, all of it in minutes"},
		{"duration('90s').getSeconds()", "the second; of a duration, all of it in seconds"},
		{"timestamp('2026-02-28T23:30:00.250Z').getMilliseconds()", "the milliseconds of the second"},
	}},
}

// TestReferenceOfFunctions checks that docs/functions.md shows every function of expressions with the value that its example has.
// The flag -update writes it.
func TestReferenceOfFunctions(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString("# Functions of expressions\n\n<!-- Written by dev/generate.sh, which evaluates the examples. Do not edit. -->\n\n" +
		"This page lists the functions that expressions may call, each with an example and the value that it has. Expressions are in the\n" +
		"[Common Expression Language](https://cel.dev); [the language](language.md#expressions) explains where they stand and what they read.\n")
	var called strings.Builder
	for _, g := range functionExamples {
		fmt.Fprintf(&page, "\n## %s\n\n| Expression | Value | Meaning |\n|---|---|---|\n", g.group)
		for _, example := range g.examples {
			value, err := NewEvaluator().Value(t.Context(), example[0], sample(t))
			if err != nil {
				t.Errorf("%s: %v", example[0], err)
				continue
			}
			shown := strings.NewReplacer("|", `\|`, "\n", `\n`)
			fmt.Fprintf(&page, "| `%s` | `%s` | %s |\n", shown.Replace(example[0]), shown.Replace(Shown(value)), example[1])
			called.WriteString(example[0] + "\n")
		}
	}
	l, err := theLanguage()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(l.functions, l.methods) {
		if !regexp.MustCompile(`(^|[^\w.]|\w*\.|[\])'"]\.)` + regexp.QuoteMeta(name) + `\(`).MatchString(called.String()) {
			t.Errorf("the function %s has no example", name)
		}
	}
	golden.Check(t, "../../docs/functions.md", page.String())
}
