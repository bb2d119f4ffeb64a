package ansi_test

import (
	"strings"
	"testing"

	"golang.org/x/net/html"

	"switchyard/gateway/web/ansi"
)

func TestSequencesOfStylesBecomeSpansAndOthersAreDropped(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"plain":              {"a\tb c", "a\tb c"},
		"empty":              {"", ""},
		"markup":             {`<b onclick="x">&'`, "&lt;b onclick=&#34;x&#34;&gt;&amp;&#39;"},
		"colour":             {"\x1b[31mred\x1b[0m plain", `<span class="c1">red</span> plain`},
		"bright":             {"\x1b[92;100mx", `<span class="c10 b8">x</span>`},
		"styles":             {"\x1b[1;2;3;4;9mx\x1b[22;23;24;29my", `<span class="bold faint italic underline strike">x</span>y`},
		"inverse":            {"\x1b[7mx\x1b[32my\x1b[27mz", `<span class="s">x</span><span class="s2">y</span><span class="c2">z</span>`},
		"256 colours":        {"\x1b[38;5;9mx\x1b[38;5;196my\x1b[48;5;255mz", `<span class="c9">xy</span><span class="c9 b7">z</span>`},
		"true colour":        {"\x1b[38;2;250;10;10mx\x1b[39my", `<span class="c9">x</span>y`},
		"with colons":        {"\x1b[38:2::0:200:0mx\x1b[4:0;38:5:1my", `<span class="c2">x</span><span class="c1">y</span>`},
		"colour of the line": {"\x1b[58;5;3;1mx", `<span class="bold">x</span>`},
		"cut colour":         {"\x1b[38;5mx\x1b[38;2;1my", "xy"},
		"huge number":        {"\x1b[99999999999999999999;1mx", `<span class="bold">x</span>`},
		"empty parameters":   {"\x1b[1m\x1b[mx", "x"},
		"not of styles":      {"\x1b[>4;2mx\x1b[?1my\x1b[1 mz", "xyz"},
		"title":              {"\x1b]0;evil\ax\x1b]2;evil\x1b\\y", "xy"},
		"link":               {"\x1b]8;;https://evil.example\x1b\\text\x1b]8;;\x1b\\", "text"},
		"clipboard":          {"\x1b]52;c;ZXZpbA==\ax", "x"},
		"device strings":     {"\x1bPq#0\x1b\\x\x1b_apc\x1b\\y\x1b^pm\x1b\\z\x1bXsos\x1b\\", "xyz"},
		"movements":          {"a\x1b[2A\x1b[10;10Hb\x1b[2J\x1b[sc\x1b[u\x1b[6nd", "abcd"},
		"other escapes":      {"\x1b(Ba\x1b7b\x1b=c\x1b#8d\x1bce", "abcde"},
		"not ended":          {"a\x1b]0;shown", "a0;shown"},
		"string cut":         {"a\x1b]0;shown\x1b[31mred", `a0;shown<span class="c1">red</span>`},
		"control cut":        {"a\x1b[31", "a31"},
		"control bad":        {"a\x1b[3\x01x", "a3x"},
		"escape alone":       {"a\x1b", "a"},
		"escape twice":       {"\x1b\x1b[1mx", `<span class="bold">x</span>`},
		"controls":           {"a\x00\x01\a\v\f\x0e\x7fb", "ab"},
		"C1":                 {"a\u009b31mb\u0085c", "a31mbc"},
		"no UTF-8":           {"a\xff\xfeb", "a\uFFFD\uFFFDb"},
		"progress":           {"10%\r50%\r100%", "100%"},
		"progress shorter":   {"abcdef\rxy", "xycdef"},
		"CRLF":               {"whole\r", "whole"},
		"progress erased":    {"abcdef\r\x1b[Kxy", "xy"},
		"erased before":      {"abc\b\x1b[1Kx", "  x"},
		"erased all":         {"abc\x1b[2Kx", "   x"},
		"backspace":          {"ab\b\b\b\bcd\b", "cd"},
		"overwritten colour": {"\x1b[31mabc\r\x1b[0mx", `x<span class="c1">bc</span>`},
		"direction":          {"a\u202eb", `a<span class="code">&lt;U+202E&gt;</span>b`},
		"invisible":          {"\u200b\u2066\ufeff\u00ad", `<span class="code">&lt;U+200B&gt;&lt;U+2066&gt;&lt;U+FEFF&gt;&lt;U+00AD&gt;</span>`},
		"tags":               {"\U000e0041", `<span class="code">&lt;U+E0041&gt;</span>`},
		"emoji":              {"👩\u200d💻 ✔\ufe0f é 漢", "👩\u200d💻 ✔\ufe0f é 漢"},
	} {
		t.Run(name, func(t *testing.T) {
			var s ansi.Stream
			if got := string(s.Parse(test.text).HTML()); got != test.want {
				t.Errorf("%q\n is %s\nnot %s", test.text, got, test.want)
			}
		})
	}
}

func TestStylePersistsAcrossLines(t *testing.T) {
	var s ansi.Stream
	s.Parse("\x1b[1;33mfirst")
	if got, want := string(s.Parse("second").HTML()), `<span class="c3 bold">second</span>`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.Parse("\x1b[0m")
	if got := string(s.Parse("third").HTML()); got != "third" {
		t.Errorf("got %s after the style has ended", got)
	}
}

func TestMarksAreNestedInSpans(t *testing.T) {
	for name, test := range map[string]struct{ text, query, want string }{
		"none":          {"abc", "x", "abc"},
		"empty":         {"abc", "", "abc"},
		"one":           {"a<b>c", "<b>", "a<mark>&lt;b&gt;</mark>c"},
		"several":       {"abab", "ab", "<mark>ab</mark><mark>ab</mark>"},
		"across styles": {"ab\x1b[31mcd\x1b[0mef", "bcde", `a<mark>b</mark><span class="c1"><mark>cd</mark></span><mark>e</mark>f`},
		"any case":      {"Error ERROR", "error", "<mark>Error</mark> <mark>ERROR</mark>"},
		"exact case":    {"Error ERROR", "ERROR", "Error <mark>ERROR</mark>"},
		"other length":  {"İstanbul x", "x", "İstanbul <mark>x</mark>"},
		"shown number":  {"a\u202eb", "202E", `a<span class="code">&lt;U+<mark>202E</mark>&gt;</span>b`},
	} {
		t.Run(name, func(t *testing.T) {
			var s ansi.Stream
			line := s.Parse(test.text)
			if got := string(line.Marked(ansi.Find(line.Text(), test.query, 100))); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		"\x1b[31mred\x1b[0m", "a\u202eb\r\x1b[K<script>", "\x1b]8;;x\x1b\\l\x1b]8;;\a", "\x1b[38;2;1;2;3mx\x1b[38:5:200my", "\xff\x00\b\b&amp;</span>", "İi\x1b[7mx",
	} {
		f.Add(seed, "x")
	}
	f.Fuzz(func(t *testing.T, text, query string) {
		var s, again ansi.Stream
		line := s.Parse(text)
		checkHTML(t, string(line.HTML()), line.Text(), "span")
		checkHTML(t, string(line.Marked(ansi.Find(line.Text(), query, 50))), line.Text(), "span", "mark")
		checkHTML(t, string(s.Parse("next").HTML()), "next", "span")
		if shown := again.Parse(line.Text()).Text(); shown != line.Text() {
			t.Errorf("the visible text %q is shown as %q", line.Text(), shown)
		}
	})
}

// checkHTML checks that a line shows the text, in closed elements of the given names that have at most a class.
func checkHTML(t *testing.T, line, text string, names ...string) {
	t.Helper()
	var shown strings.Builder
	var open []string
	for z := html.NewTokenizer(strings.NewReader(line)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			if len(open) > 0 || shown.String() != text {
				t.Errorf("%s\nshows %q, not %q; open: %q", line, shown.String(), text, open)
			}
			return
		case html.TextToken:
			shown.WriteString(html.UnescapeString(string(z.Raw())))
		case html.StartTagToken:
			tag := z.Token()
			if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+tag.Data+" ") || len(tag.Attr) > 1 || len(tag.Attr) == 1 && tag.Attr[0].Key != "class" {
				t.Errorf("%s has the tag %s", line, tag)
			}
			open = append(open, tag.Data)
		case html.EndTagToken:
			tag := z.Token()
			if len(open) == 0 || open[len(open)-1] != tag.Data {
				t.Errorf("%s ends %s in %q", line, tag.Data, open)
				return
			}
			open = open[:len(open)-1]
		default:
			t.Errorf("%s has %s", line, z.Token())
		}
	}
}
