package tui

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// shown returns what a terminal receives for text that is written in pieces.
func shown(t interface{ Fatal(...any) }, color bool, pieces ...string) string {
	var out bytes.Buffer
	w := NewTerminalWriter(&out, color)
	for _, piece := range pieces {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	return out.String()
}

func TestTerminalWriterNeutralises(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"text":                   {"a\tb é 日本 👍🏽\n", "a\tb é 日本 👍🏽\n"},
		"title":                  {"\x1b]0;root@yours\x07ok\n", "ok\n"},
		"title with ST":          {"\x1b]2;x\x1b\\ok\n", "ok\n"},
		"clipboard":              {"\x1b]52;c;cm0gLXJmIC8=\x07ok\n", "ok\n"},
		"link":                   {"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\\n", "text\n"},
		"clear":                  {"a\x1b[2J\x1b[H\x1b[3Jb\n", "ab\n"},
		"cursor":                 {"a\x1b[1A\x1b[10Db\n", "ab\n"},
		"reset":                  {"\x1bca\n", "a\n"},
		"report":                 {"\x1b[6n\x1b[c\x05a\n", "a\n"},
		"alternate screen":       {"\x1b[?1049ha\n", "a\n"},
		"DCS":                    {"\x1bP$q\"p\x1b\\a\n", "a\n"},
		"C1 in UTF-8":            {"a\u009b2Jb\u009d0;t\u009cc\n", "a2Jb0;tc\n"},
		"C1 as bytes":            {"a\x9b2Jb\n", "ab\n"},
		"backspace":              {"safe\b\b\b\bevil\n", "safeevil\n"},
		"Windows":                {"a\r\nb\r\n", "a\nb\n"},
		"written over":           {"10%\r20%\n", "10%\n20%\n"},
		"colour":                 {"\x1b[31mred\x1b[0m \x1b[1;38:5:9mmore\x1b[m\n", "\x1b[31mred\x1b[0m \x1b[1;38:5:9mmore\x1b[m\n"},
		"colour without an end":  {"\x1b[31mred\nplain\n", "\x1b[31mred\x1b[m\nplain\n"},
		"no colour: keyboard":    {"\x1b[>4;1mx\n", "x\n"},
		"sequence without end":   {"\x1b]0;forever\nnext\n", "\nnext\n"},
		"character without end":  {"\xe6\x97\nnext\n", "\ufffd\nnext\n"},
		"character cut by a seq": {"\xe6\x1b]0;t\x07x\n", "\ufffdx\n"},
	} {
		if got := shown(t, true, test.in); got != test.want {
			t.Errorf("%s: %q is shown as %q, want %q", name, test.in, got, test.want)
		}
	}
	if got := shown(t, false, "\x1b[31mred\x1b[0m\n"); got != "red\n" {
		t.Errorf("without colour %q", got)
	}
}

var colouring = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

func TestTerminalWriterIsSafeForAnySplitOfTheText(t *testing.T) {
	pieces := rapid.SliceOf(rapid.OneOf(
		rapid.StringMatching(`[a-z\n\r\t ]{0,5}`),
		rapid.SampledFrom([]string{"\x1b", "\x1b[", "\x1b]", "\x1bP", "\x9b", "\u009b", "31m", "2J", "\x07", "\\", ";", "\xe6", "\x97", "\x00", "é"}),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(p []byte) string { return string(p) }),
	))
	rapid.Check(t, func(t *rapid.T) {
		all := pieces.Draw(t, "pieces")
		got := shown(t, true, all...)
		if whole := shown(t, true, strings.Join(all, "")); got != whole {
			t.Fatalf("in pieces %q, at once %q", got, whole)
		}
		for _, r := range colouring.ReplaceAllString(got, "") {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q is let through in %q", r, got)
			}
		}
	})
}
