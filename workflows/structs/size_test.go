package structs

import "testing"

// The estimates of text are never below what its JSON takes.
func TestTextBytesCoversEscapes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 2, "plain": 7, `"quoted"`: 12, "line\n": 12, "\x00": 8, `a\b`: 6} {
		if got := TextBytes(text); got != want {
			t.Errorf("%q takes %d bytes, want %d", text, got, want)
		}
	}
}
