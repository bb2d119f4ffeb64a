package definition

import (
	"strings"
	"testing"
	"time"

	"switchyard/workflows/definition/source"
)

// hostileBytes is a quarter of the size limit: large enough to reveal quadratic work, and fast.
const hostileBytes = source.MaxBytes / 4

// TestHostileDocumentsAreReadQuickly checks that no document takes long to read, whatever its content.
func TestHostileDocumentsAreReadQuickly(t *testing.T) {
	fill := func(before, unit, after string) string {
		return before + strings.Repeat(unit, (hostileBytes-len(before)-len(after))/len(unit)) + after
	}
	for name, document := range map[string]string{
		"brackets":      fill("a: ", "[", ""),
		"braces":        fill("", "{", ""),
		"open maps":     fill("", "{a: ", ""),
		"dashes":        fill("", "- ", ""),
		"questions":     fill("", "? ", ""),
		"comments":      fill("a: b\n", "#\n", ""),
		"blank lines":   fill("a: b\n", "\n", "c: d"),
		"spaces":        fill("a: b\n", " ", "c"),
		"small items":   fill("a: [", "1,", "1]"),
		"wide map":      fill("name: a\ncontext: {", "a: 1, ", "b: 2}"),
		"one key":       fill("", "a: 1\n", ""),
		"anchors":       fill("a: [", "&a 1,", "1]"),
		"aliases":       fill("a: &a 1\nb: [", "*a,", "1]"),
		"merges":        fill("name: a\ncontext: &c {a: 1}\ntasks:\n", "  b: {<<: *c}\n", ""),
		"long string":   fill("name: '", "'''", ""),
		"escapes":       fill("name: \"", "\\n", "\""),
		"block":         fill("name: |\n", " x\n", ""),
		"tags":          fill("a: [", "!!str 1,", "1]"),
		"documents":     fill("", "---\n", ""),
		"unclosed":      fill("a: \"", "b\n", ""),
		"bad bytes":     fill("", "\xff", ""),
		"json brackets": fill(`{"a": `, "[", ""),
		"json items":    fill(`{"a": [`, "1,", "1]}"),
		"json strings":  fill(`{"a": "`, `\"`, `"}`),
		"json map":      fill(`{`, `"a":1,`, `"b":2}`),
		"json garbage":  fill(`{`, `é`, ``),
		"json halves":   fill(`{"a": "`, `\ud800`, `"}`),
		"long cycle":    fill("name: a\ntasks:\n a: {dependsOn: [a]}\n", " b: {dependsOn: [a, b]}\n", ""),
		"dense":         fill("name: a\ntasks:\n a: {type: shell, spec: {command: x}, dependsOn: [", "b,", "b]}\n b: {type: shell, spec: {command: x}}\n"),
		"expressions":   fill("name: a\ntasks: {b: {type: shell, spec: {command: [", "'${{',", "x]}}}"),
		"templates":     fill("name: a\ntasks: {b: {type: shell, spec: {command: \"", "${{ 1 }}", "${{\"}}}"),
		"expressions 3": fill("name: a\ntasks: {b: {type: shell, spec: {command: \"", "${{ 1 }}", "\"}}}"),
		"open template": fill("name: a\ntasks: {b: {type: shell, spec: {command: \"${{ ", "{", "\"}}}"),
		"expressions 2": fill("name: a\ntasks: {b: {type: shell, spec: {command: [", "'${{ x }}',", "x]}}}"),
		"parallel":      fill("name: a\ntasks: {b: {type: shell, spec: {command: x}, parallel: '", "1+", "'}}"),
		"items":         fill("name: a\ntasks: {b: {type: shell, spec: {command: x}, foreach: [", "1,", "1]}}"),
		"enum":          fill("name: a\ninputs: {a: {default: x, enum: [", "1,", "1]}}"),
		"inline":        fill("", "{name: a, tasks: {b: {type: run, spec: {definition: ", ""),
		"inline wide":   fill("name: a\ntasks: {b: {type: run, spec: {definition: {name: b, tasks: {", "c: {},", "}}}}}"),
		"defaults":      fill("name: a\ndefaults: {type: shel, env: {A: '${{ x'}}\ntasks: {", "b: {},", "c: {}}"),
		"conditions":    fill("name: a\ntasks: {b: {type: shell, spec: {command: x}, condition: '", "(", "'}}"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, file := range []string{"a.yaml", "a.json"} {
				start := time.Now()
				def, err := Parse(file, []byte(document))
				if err == nil {
					t.Errorf("%s accepts it: %d tasks", file, len(def.GetTasks()))
				}
				took := time.Since(start)
				t.Logf("%s %v %.80s", file, took.Round(time.Millisecond), err)
				if took > generous {
					t.Errorf("%s took %v", file, took)
				}
			}
		})
	}
}
