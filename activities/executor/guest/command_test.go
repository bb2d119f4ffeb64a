package guest

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestQuotedTextIsOneWordInOneLine(t *testing.T) {
	for _, shell := range []string{"sh", "bash", "busybox"} {
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		args := []string{"-c"}
		if shell == "busybox" {
			args = []string{"sh", "-c"}
		}
		text := "a'b''\n\n\"$x`y`\\\n" + `\n` + "\t!*?[~#&;|<>(){}\r\x1b\x7fü\n"
		word := quote(text)
		if strings.Contains(word, "\n") {
			t.Errorf("%q has more than one line", word)
		}
		out, err := exec.Command(shell, append(args, `_sy_nl=$(printf "\nx");_sy_nl=${_sy_nl%x};printf %s `+word)...).Output()
		if err != nil || string(out) != text {
			t.Errorf("%s makes %q of it, error %v", shell, out, err)
		}
	}
}

// TestMarkIsFoundInNoise checks that output before the mark is not part of the program's output, and that all output
// after it is.
func TestMarkIsFoundInNoise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := rapid.SliceOf(rapid.Byte()).Draw(t, "before"), rapid.SliceOf(rapid.Byte()).Draw(t, "after")
		text := append(before, markByte+"token 42"+markByte...)
		for n := range len(text) {
			if _, _, ok := cutMark(text[:n], "token"); ok {
				t.Fatalf("there is a mark in the first %d bytes", n)
			}
		}
		number, rest, ok := cutMark(append(text, after...), "token")
		if !ok || number != 42 || string(rest) != string(after) {
			t.Fatalf("%d, %q, %v", number, rest, ok)
		}
	})
}
