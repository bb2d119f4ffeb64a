package logs

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTail(t *testing.T) {
	for name, c := range map[string]struct {
		keep      int
		in        string
		want      string
		truncated bool
	}{
		"empty":                        {8, "", "", false},
		"all of it":                    {8, "12345678", "12345678", false},
		"the end":                      {8, "123456789", "23456789", true},
		"cut within a character":       {8, "äöüäö", "öüäö", true},
		"cut after its first byte":     {4, "xxxx€y", "€y", true},
		"cut leaves two of its bytes":  {3, "xxxx€y", "y", true},
		"invalid byte":                 {8, "a\xffb", "a\uFFFDb", false},
		"invalid byte at the start":    {8, "\x80ab", "\uFFFDab", false},
		"half a character at the end":  {8, "a\xe2\x82", "a\uFFFD", false},
		"replacement makes it longer":  {4, "\xffab\xff", "b\uFFFD", true},
		"a run of invalid bytes":       {8, "\xff\xff\xff\xff\xff\xff\xff\xff", "\uFFFD", false},
		"NUL and control characters":   {8, "\x00\x1b[0m", "\x00\x1b[0m", false},
		"a character larger than keep": {2, "€", "", true},
	} {
		one := tail{keep: c.keep}
		one.add([]byte(c.in))
		each := tail{keep: c.keep}
		for i := range len(c.in) {
			each.add([]byte{c.in[i]})
		}
		for _, tl := range []tail{one, each} {
			if got, truncated := tl.text(); got != c.want || truncated != c.truncated {
				t.Errorf("%s: tail of %q is %q, %t; want %q, %t", name, c.in, got, truncated, c.want, c.truncated)
			}
		}
	}
}

// checkTail compares a tail with the whole output.
func checkTail(t testing.TB, w *Writer, stream string, printed []byte, keep int) {
	t.Helper()
	text, truncated := w.Tail(stream)
	whole := strings.ToValidUTF8(string(printed), "\uFFFD")
	if !utf8.ValidString(text) || len(text) > keep {
		t.Errorf("%s: the tail has %d bytes of at most %d, valid %t", stream, len(text), keep, utf8.ValidString(text))
	}
	if truncated != (text != whole) {
		t.Errorf("%s: truncated %t, but %d bytes of %d", stream, truncated, len(text), len(whole))
	}
	if utf8.Valid(printed) && (!strings.HasSuffix(whole, text) || truncated && len(text) <= keep-utf8.UTFMax) {
		t.Errorf("%s: the tail, %d bytes, is not the end of what was printed", stream, len(text))
	}
}

func TestTailIsASuffixInBoundedMemory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tl := tail{keep: rapid.IntRange(1, 50).Draw(rt, "keep")}
		var all []byte
		for _, s := range rapid.SliceOf(rapid.String()).Draw(rt, "pieces") {
			tl.add([]byte(s))
			all = append(all, s...)
			if len(tl.bytes) > 2*tl.keep {
				rt.Fatalf("%d bytes are kept for %d", len(tl.bytes), tl.keep)
			}
			got, truncated := tl.text()
			if !strings.HasSuffix(string(all), got) || truncated != (len(got) < len(all)) ||
				truncated && len(got) <= tl.keep-utf8.UTFMax {
				rt.Fatalf("tail of %q is %q, %t", all, got, truncated)
			}
		}
	})
}
