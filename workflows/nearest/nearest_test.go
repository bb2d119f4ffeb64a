package nearest

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestWord(t *testing.T) {
	fields := []string{"dependsOn", "condition", "priority", "env", "type"}
	for word, want := range map[string]string{
		"depends-on": "dependsOn", "DependsOn": "dependsOn", "dependOn": "dependsOn", "conditon": "condition",
		"priorty": "priority", "tpye": "type", "enb": "env", "": "", "frobnicate": "", "xyz": "",
		"env": "", "ENV": "env",
	} {
		if got := Word(word, fields); got != want {
			t.Errorf("%q: %q", word, got)
		}
	}
	if got := DidYouMean("conditon", fields); got != "did you mean condition?" {
		t.Errorf("hint %q", got)
	}
}

func TestRank(t *testing.T) {
	if got := Rank("biuld", []string{"deploy", "test", "build", "built"}); !slices.Equal(got[:2], []string{"build", "built"}) {
		t.Errorf("ranked %q", got)
	}
}

func TestDistanceIsSymmetric(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if d := distance(a, b); d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Fatalf("from %q to %q: %d", a, b, d)
		}
	})
}
