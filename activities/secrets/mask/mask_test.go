package mask

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// naive specifies masking without regard to speed: it replaces the bytes of all occurrences of patterns,
// and overlapping occurrences share one replacement.
func naive(patterns []string, text string) string {
	type part struct{ start, end int }
	var parts []part
	for _, p := range patterns {
		for at := range len(text) {
			if strings.HasPrefix(text[at:], p) {
				parts = append(parts, part{at, at + len(p)})
			}
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return a.start - b.start })
	var b strings.Builder
	from := 0
	for i := 0; i < len(parts); {
		start, end := parts[i].start, parts[i].end
		for i++; i < len(parts) && parts[i].start < end; i++ {
			end = max(end, parts[i].end)
		}
		b.WriteString(text[from:start] + Replacement)
		from = end
	}
	return b.String() + text[from:]
}

// split feeds a text to a stream in chunks of the given lengths, and the rest in one chunk.
func split(s *Set, text string, lengths []int) string {
	m := s.Stream()
	var out []byte
	rest := []byte(text)
	for _, n := range lengths {
		n = min(n, len(rest))
		piece := slices.Clone(rest[:n])
		out = m.Append(out, piece)
		clear(piece) // a stream must not retain its input
		rest = rest[n:]
	}
	return string(m.Flush(m.Append(out, rest)))
}

func patternSet(patterns []string) *Set {
	return &Set{automaton: newAutomaton(distinct(slices.Clone(patterns)))}
}

// TestStreamReplacesLikeTheWholeText checks that a stream's output is the same as for the whole text, wherever the text
// is split. The texts have few distinct letters, so that patterns overlap, repeat and contain each other.
func TestStreamReplacesLikeTheWholeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		patterns := rapid.SliceOfN(rapid.StringMatching(`[ab]{2,6}|[abc]{2,9}|a{2,12}`), 1, 8).Draw(t, "patterns")
		text := rapid.StringMatching(`([abc]|aaa|ab){0,60}`).Draw(t, "text")
		lengths := rapid.SliceOf(rapid.IntRange(0, 7)).Draw(t, "lengths")
		if got, want := split(patternSet(patterns), text, lengths), naive(patterns, text); got != want {
			t.Fatalf("%q in %q: %q, want %q", patterns, text, got, want)
		}
	})
}

// TestSetReplacesEveryPattern finds the patterns of real values in texts that consist of pieces of them.
func TestSetReplacesEveryPattern(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[a-d"/ &é\\]{4,20}(\n[a-d+=]{0,9}){0,2}`).Draw(t, "value")
		patterns := distinct(patternsOf(value))
		pieces := rapid.SliceOfN(rapid.SampledFrom(append(patterns, "a", "b", "%22", "\n", "YWJj")), 0, 9).Draw(t, "pieces")
		lengths := rapid.SliceOf(rapid.IntRange(0, 30)).Draw(t, "lengths")
		text := strings.Join(pieces, "")
		if cut := rapid.IntRange(0, 3).Draw(t, "cut"); cut < len(text) {
			text = text[cut:]
		}
		got := split(New([]string{value}), text, lengths)
		if want := naive(patterns, text); got != want {
			t.Fatalf("%q in %q: %q, want %q", value, text, got, want)
		}
		if whole := New([]string{value}).Text(text); whole != got {
			t.Fatalf("%q in %q: %q as a whole, %q as a stream", value, text, whole, got)
		}
	})
}

// TestStreamsCanBeResumedWhereTheySay checks that where CanResume is true, a new stream masks the rest in the same way
// and nothing is held back, and that a stream with the saved state does so everywhere.
func TestStreamsCanBeResumedWhereTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		patterns := rapid.SliceOfN(rapid.StringMatching(`[ab\n]{2,6}|[abc]{2,9}|a{2,12}`), 1, 8).Draw(t, "patterns")
		s := patternSet(patterns)
		s.short = rapid.SliceOfN(rapid.StringMatching(`[abc]{1,3}`), 0, 2).Draw(t, "short")
		text := rapid.StringMatching(`([abc\n]|aaa|ab){0,60}`).Draw(t, "text")
		whole, first := string(s.Bytes([]byte(text))), s.Stream()
		var given []byte
		for i := range len(text) {
			if first.CanResume() {
				if got := string(given) + string(s.Bytes([]byte(text[i:]))); got != whole {
					t.Fatalf("%q in %q, resumed at %d: %q, want %q", patterns, text, i, got, whole)
				}
			}
			state, err := first.Save()
			next, unread := s.Continue(state)
			if err = errors.Join(err, unread); err != nil {
				t.Fatal(err)
			}
			rest := next.Flush(next.Append(nil, []byte(text[i:])))
			if got := string(given) + string(rest); got != whole {
				t.Fatalf("%q in %q, continued at %d from %s: %q, want %q", patterns, text, i, state, got, whole)
			}
			given = first.Append(given, []byte{text[i]})
		}
	})
}

func FuzzStream(f *testing.F) {
	f.Add("abab", "aabababb", uint16(3))
	f.Add("s3cret value", "a s3cret value, c2VjcmV0 and more", uint16(7))
	f.Add("aa\nbb", "aaaa\nbbbb", uint16(1))
	f.Add("x", "x\nxx\r\nx\r\n", uint16(1))
	f.Fuzz(func(t *testing.T, value, text string, piece uint16) {
		s := New([]string{value})
		if s == nil {
			return
		}
		lengths := make([]int, min(len(text)/max(int(piece), 1), 1000))
		for i := range lengths {
			lengths[i] = max(int(piece), 1)
		}
		got := split(s, text, lengths)
		if len(value) >= MinLength {
			if want := naive(distinct(patternsOf(value)), text); got != want {
				t.Fatalf("%q in %q: %q, want %q", value, text, got, want)
			}
		}
		if whole := s.Text(text); whole != got {
			t.Fatalf("%q in %q: %q as a whole, %q in pieces of %d", value, text, whole, got, piece)
		}
	})
}

func TestEncodingsAreMasked(t *testing.T) {
	values := []string{
		"hunter2-correct-horse", "p@ss w/rd&?<x>", "with \"quotes\" and \\", "müßig-Schlüssel-🔑", "abcd", "abcde", "abcdef",
		strings.Repeat("long-and-wrapped-", 12),
	}
	for _, value := range values {
		s := New([]string{value})
		quoted, _ := json.Marshal(value)
		wrapped := func(width int) string {
			var lines []string
			for part := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString([]byte(value))), width) {
				lines = append(lines, string(part))
			}
			return strings.Join(lines, "\n")
		}
		texts := map[string]string{
			"itself":          value,
			"json":            string(quoted),
			"ascii json":      asciiJSON(string(quoted)),
			"query":           url.QueryEscape(value),
			"path":            url.PathEscape(value),
			"base64":          base64.StdEncoding.EncodeToString([]byte(value)),
			"raw base64":      base64.RawStdEncoding.EncodeToString([]byte(value)),
			"base64 of echo":  base64.StdEncoding.EncodeToString([]byte(value + "\n")),
			"url base64":      base64.URLEncoding.EncodeToString([]byte(value)),
			"base64 in lines": wrapped(76),
			"openssl":         wrapped(64),
		}
		for name, text := range texts {
			got := strings.Trim(s.Text("["+text+"]"), "[]\"\n")
			if strings.Trim(got, "*\n") != "" {
				t.Errorf("%s of %q: %q is left of %q", name, value, got, text)
			}
		}
		// Within a longer text, a few bits at the ends belong to the neighbouring bytes.
		for before := range 4 {
			for after := range 4 {
				longer := strings.Repeat("<", before) + value + strings.Repeat(">", after)
				for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
					got := s.Text(encoding.EncodeToString([]byte(longer)))
					if !strings.Contains(got, Replacement) || len(strings.ReplaceAll(got, Replacement, "")) > 14 {
						t.Errorf("base64 of %q: %q", longer, got)
					}
				}
			}
		}
	}
}

// TestCommandsAreMasked checks that the output of common commands is masked.
func TestCommandsAreMasked(t *testing.T) {
	const value = "hunter2-correct-horse-battery-staple-and-more-than-one-line-of-base64-has"
	s := New([]string{value})
	for _, line := range []string{`printf %s "$V" | base64`, `echo "$V" | base64`, `echo "$V" | base64 -w0`, `printf %s "$V" | openssl base64`, `echo "$V" | rev | rev`} {
		c := exec.Command("sh", "-c", line)
		c.Env = append(c.Environ(), "V="+value)
		out, err := c.Output()
		if err != nil {
			continue // the command is not installed
		}
		if got := s.Text(string(out)); strings.Trim(got, "*\n") != "" {
			t.Errorf("%s: %q", line, got)
		}
	}
}

func TestLinesOfAValueAreMasked(t *testing.T) {
	key := "-----BEGIN KEY-----\nMIIEvQIBADANBg\n  indented-line\nab\n-----END KEY-----"
	s := New([]string{key})
	for text, want := range map[string]string{
		key:                            "***",
		"x MIIEvQIBADANBg y":           "x *** y",
		"  indented-line\n":            "  ***\n",
		"ab\n":                         "ab\n", // too short to be a secret by itself
		"-----BEGIN KEY-----\r\nother": "***\r\nother",
	} {
		if got := s.Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestShortValuesAreMaskedAsWholeLines(t *testing.T) {
	s := New([]string{"x", "42", "", "hunter2"})
	for text, want := range map[string]string{
		"x":                   "***",
		"x\n":                 "***\n",
		"x\r\n42\nx":          "***\r\n***\n***",
		"xx\nx2\n 42\n420":    "xx\nx2\n 42\n420",
		"\n\nx\n\n":           "\n\n***\n\n",
		"x hunter2\n42\r\r\n": "x ***\n42\r\r\n",
		"x\r":                 "***\r",
	} {
		for piece := 1; piece < 4; piece++ {
			if got := split(s, text, slices.Repeat([]int{piece}, len(text))); got != want {
				t.Errorf("%q in pieces of %d: %q, want %q", text, piece, got, want)
			}
		}
		if got := s.Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestNothingToMask(t *testing.T) {
	if New(nil) != nil || New([]string{"", " ", "\n", "      \n\t"}) != nil {
		t.Error("there is a set of nothing")
	}
	var none *Set
	if none.Text("a") != "a" || string(none.Bytes([]byte("a"))) != "a" {
		t.Error("a nil set masks")
	}
}

// TestStreamHoldsLessThanAPattern checks that a stream holds back less than one pattern, even if the text repeats the
// beginning of one endlessly.
func TestStreamHoldsLessThanAPattern(t *testing.T) {
	value := strings.Repeat("a", 100)
	for _, text := range []string{strings.Repeat("a", 1<<20), strings.Repeat(value[:99]+"b", 5000)} {
		m := New([]string{value}).Stream()
		given, largest := 0, 0
		for piece := range slices.Chunk([]byte(text), 37) {
			given += len(m.Append(nil, piece))
			largest = max(largest, len(m.held))
		}
		if largest > 4*compactFrom {
			t.Errorf("%d bytes are held", largest)
		}
		if rest := len(m.held) - m.from; rest >= 2*len(value) {
			t.Errorf("%d bytes are held back", rest)
		}
	}
}

// TestStreamGivesAtOnceWhatIsCertain checks that a prompt that contains no part of a secret is passed on immediately.
func TestStreamGivesAtOnceWhatIsCertain(t *testing.T) {
	m := New([]string{"Password1"}).Stream()
	if got := string(m.Append(nil, []byte("Continue? [y/N] "))); got != "Continue? [y/N] " {
		t.Errorf("%q", got)
	}
	if got := string(m.Append(nil, []byte("Pass"))); got != "" {
		t.Errorf("%q is given of what may become a secret", got)
	}
	if got := string(m.Append(nil, []byte("phrase: "))); got != "Passphrase: " {
		t.Errorf("%q", got)
	}
}
