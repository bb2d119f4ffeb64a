package words

import (
	"testing"
	"time"
	"unicode"
)

func TestDurationHasAtMostTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 0: "0.0s", 440 * time.Millisecond: "0.4s", 9949 * time.Millisecond: "9.9s",
		9960 * time.Millisecond: "9s", 59999 * time.Millisecond: "59s", 185 * time.Second: "3m05s",
		time.Hour - 1: "59m59s", 127 * time.Minute: "2h07m", 50 * time.Hour: "50h00m",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestPlainKeepsTheLastVersionOfALine(t *testing.T) {
	for in, want := range map[string]string{
		"as it is":                 "as it is",
		"10%\r50%\r100%":           "100%",
		"\x1b[1;31mred\x1b[0m\r\n": "red",
		"bell\a and\ttab\x00":      "bell and\ttab",
		"\x1b]0;title\aafter":      "after",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q looks like %q, want %q", in, got, want)
		}
	}
}

func FuzzOneLine(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\x1b[2J", "\x1b", "\u009b31m", "x\x7f", "\xff\xfe", "日本\u2028語"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, line := range []string{OneLine(text), Plain(text)} {
			for _, r := range line {
				if unicode.IsControl(r) && r != '\t' {
					t.Fatalf("%q still has %q in %q", text, r, line)
				}
			}
		}
	})
}

func TestShortenKeepsTheIndexOfAnInstance(t *testing.T) {
	for _, test := range []struct {
		name  string
		width int
		want  string
	}{
		{"transform-customers[6]", 0, "transform-customers[6]"},
		{"transform-customers[6]", 22, "transform-customers[6]"},
		{"transform-customers[6]", 14, "transform-…[6]"},
		{"each[1234567]", 12, "ea…[1234567]"},
		{"each[1234567]", 10, "each[1234…"},
		{"compile-everything-now", 11, "compi…g-now"},
		{"größe-überall", 7, "grö…all"},
		{"abc", 1, "…"},
	} {
		if got := Shorten(test.name, test.width); got != test.want {
			t.Errorf("%q at %d: %q, want %q", test.name, test.width, got, test.want)
		}
	}
}

func TestVisibleReplacesDirectionCharacters(t *testing.T) {
	for in, want := range map[string]string{
		"as it is\n\tindented": "as it is\n\tindented",
		"\x1b[31mred\x00":      "[31mred",
		"\u202egnp.exe\u2069":  "\ufffdgnp.exe\ufffd",
		"a\xffb\ufffe":         "a\ufffdb\ufffd",
	} {
		if got := Visible(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
