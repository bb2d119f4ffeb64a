package condition

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestPlainAgreesWithCEL checks that CEL agrees with every expression that plain accepts.
func TestPlainAgreesWithCEL(t *testing.T) {
	kinds := []Kind{Condition, Count, Items, CacheKey, Retry, Value}
	words := append(append(groupFields(), taskFields()...), "parent", "workflow", "input", "attempt", "context", "name", "runId",
		"build", "each", "lint", "deploy", "test", "nothing", "process", "int", "math", "strings", "channel", "x", "in", "true", "package", "_", "a1")
	// Few paths of random words are valid; most valid ones begin like these.
	starts := append([]string{"parent.build", "parent.build.output", "parent.each.outputs", "workflow.input", "workflow.context", "input.item", "build"}, words...)
	rapid.Check(t, func(t *rapid.T) {
		scope := wide(rapid.SampledFrom(kinds).Draw(t, "kind"))
		var expr strings.Builder
		for i := range rapid.IntRange(1, 6).Draw(t, "length") {
			word := rapid.SampledFrom(words).Draw(t, "word")
			switch form := rapid.IntRange(0, 9).Draw(t, "form"); {
			case i == 0:
				expr.WriteString(rapid.SampledFrom(starts).Draw(t, "start"))
			case form == 0:
				expr.WriteString("['" + word + "']")
			case form == 1:
				expr.WriteString(" [ \"" + word + "\" ]")
			case form == 2:
				expr.WriteString(" . " + word)
			case form == 3:
				expr.WriteString(rapid.SampledFrom([]string{"[0]", "()", ".size()", " + 1", "-" + word, "['notify-failure']", "['\\'']", ".1"}).Draw(t, "odd"))
			default:
				expr.WriteString("." + word)
			}
		}
		got, ok := scope.plain(expr.String())
		if !ok {
			return
		}
		want, err := scope.check(expr.String())
		if err != nil {
			t.Fatalf("%d: %q is taken for good, but: %v", scope.Kind, expr.String(), err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%d: %q (-CEL +plain):\n%s", scope.Kind, expr.String(), diff)
		}
	})
	for _, expr := range []string{"parent.build.output.x.y", "workflow.input.channel", "build.files", "input.item.name", "parent['notify-failure'].output.x", "workflow.runId", " parent . each . outputs\n"} {
		if _, ok := wide(Value).plain(expr); !ok {
			t.Errorf("%q is not plain", expr)
		}
	}
}

func BenchmarkCheckPlain(b *testing.B) {
	scope := wide(Value)
	for b.Loop() {
		if _, err := Check("parent.build.output.version", scope); err != nil {
			b.Fatal(err)
		}
	}
}
