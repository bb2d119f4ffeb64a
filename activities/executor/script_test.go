package executor

import "testing"

func TestScriptsOfSeveralLinesStopAtTheFirstError(t *testing.T) {
	for script, want := range map[string]string{
		"make": "-c", "make\n": "-c", "\n  make\n\n": "-c", "": "-c", "make; test": "-c",
		"cd /src\nmake": "-ec", "make \\\n  all\n": "-ec",
	} {
		if got := ShellFlags(script); got != want {
			t.Errorf("%q: %s, want %s", script, got, want)
		}
	}
}
