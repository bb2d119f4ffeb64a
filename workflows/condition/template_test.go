package condition

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"
)

func TestParseTemplate(t *testing.T) {
	type p = part
	tests := map[string][]part{
		"":                       nil,
		"plain":                  {p{text: "plain"}},
		"${{x}}":                 {p{"x", 3, true}},
		"a ${{ x }} b":           {p{text: "a "}, p{" x ", 5, true}, p{text: " b"}},
		"${{x}}${{y}}":           {p{"x", 3, true}, p{"y", 9, true}},
		"$${{ x }}":              {p{text: "${{"}, p{text: " x }}"}},
		"$$${{ x }}":             {p{text: "$${{"}, p{text: " x }}"}},
		"a$${{b}}${{c}}":         {p{text: "a${{"}, p{text: "b}}"}, p{"c", 11, true}},
		"$ {{ x }} }} {{ ${x}":   {p{text: "$ {{ x }} }} {{ ${x}"}},
		"${{ '}}' }}":            {p{" '}}' ", 3, true}},
		`${{ "a}}\"}}" }}`:       {p{` "a}}\"}}" `, 3, true}},
		"${{ '''}}\n'}}''' }}":   {p{" '''}}\n'}}''' ", 3, true}},
		"${{ r'\\' + x }}":       {p{" r'\\' + x ", 3, true}},
		"${{ {'a': {'b': 1}} }}": {p{" {'a': {'b': 1}} ", 3, true}},
		"${{{'a': {}}}}!":        {p{"{'a': {}}", 3, true}, p{text: "!"}},
		"${{ /}}/.test(x) }}":    {p{" /}}/.test(x) ", 3, true}},
		"${{ a / b }}/c":         {p{" a / b ", 3, true}, p{text: "/c"}},
		"${{ x // }} note\n }}":  {p{" x // }} note\n ", 3, true}},
	}
	for text, want := range tests {
		got, err := ParseTemplate(text)
		if err != nil {
			t.Errorf("ParseTemplate(%q): %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got.parts, cmp.AllowUnexported(part{})); diff != "" {
			t.Errorf("ParseTemplate(%q) (-want +got):\n%s", text, diff)
		}
	}
	for text, want := range map[string]string{
		"ab ${{ x":            "1:4: ${{ has no }}",
		"\n\n ${{ 'x }} y":    "3:2: ${{ has no }} outside of quotes",
		"${{ a.join('\n') }}": "${{ has no }} outside of quotes",
		"${{ x }":             "${{ has no }}",
		"${{ x // }}":         "${{ has no }} outside of",
		"${{ {'a': 1 }}":      "${{ has no }} outside of",
		"x ${{ \t}}":          "1:3: there is no expression",
		"${{" + strings.Repeat("a", maxLength+1) + "}}": "longer than",
		"${{" + strings.Repeat("a", 3*maxLength):        "longer than",
	} {
		_, err := ParseTemplate(text)
		if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseTemplate(%.40q) = %v, want %q", text, err, want)
		}
	}
	if _, err := ParseTemplate("${{" + strings.Repeat("a", maxLength) + "}}"); err != nil {
		t.Errorf("the longest expression: %v", err)
	}
}

func TestCheckTemplate(t *testing.T) {
	got, err := CheckTemplate("$${{ a }} ${{ build.x }}${{parent.lint.stdout}} ${{ parent.build.exitCode }} ${{ input.item }}", wide(Condition))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"build", "lint"}, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}

func TestRender(t *testing.T) {
	e, view := NewEvaluator(), fanned(t)
	before := jsonObject(t, map[string]any{
		"command":  "deploy ${{ parent.build.output.version }} to ${{ workflow.context.env }}$${{x}}",
		"plain":    "$HOME ${x} }}",
		"count":    7,
		"whole":    "${{ build.files }}",
		"number":   "${{ build.count }}",
		"spaced":   " ${{ build.count }}",
		"null":     "${{ build.none }}",
		"mixed":    "<${{ build.none }}|${{ build.count }}|${{ build.ratio }}|${{ build.ok }}|${{ build.nested }}|${{ build.files }}>",
		"braces":   "${{ {'a}}': '}}'} }}",
		"instance": "${{ input.item.name }} ${{ input.index + 1.0 }}/${{ input.count }}",
		"deep":     map[string]any{"list": []any{"x", map[string]any{"${{ key }}": "${{ 1 + 1 }}"}, "${{ 'y' }}"}, "same": []any{1}},
	})
	unchanged := before.AsMap()
	got, err := e.Render(t.Context(), "spec", before, view)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"command":  "deploy 1.2.3 to prod${{x}}",
		"plain":    "$HOME ${x} }}",
		"count":    7.0,
		"whole":    []any{"a.go", "b.go"},
		"number":   3.0,
		"spaced":   " 3",
		"null":     nil,
		"mixed":    `<|3|0.5|true|{"key":"v"}|["a.go","b.go"]>`,
		"braces":   map[string]any{"a}}": "}}"},
		"instance": "a.go 4/10",
		"deep":     map[string]any{"list": []any{"x", map[string]any{"${{ key }}": 2.0}, "y"}, "same": []any{1.0}},
	}
	if diff := cmp.Diff(want, got.AsMap()); diff != "" {
		t.Errorf("Render (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(unchanged, before.AsMap()); diff != "" {
		t.Errorf("Render has changed what it was given:\n%s", diff)
	}
	env, err := e.RenderEnv(t.Context(), "env", map[string]string{"A": "${{ build.files }}", "B": "x", "C": "${{ build.none }}", "D": "${{build.count}}"}, view)
	if diff := cmp.Diff(map[string]string{"A": `["a.go","b.go"]`, "B": "x", "C": "", "D": "3"}, env); diff != "" || err != nil {
		t.Errorf("RenderEnv: %v (-want +got):\n%s", err, diff)
	}
}

func TestRenderErrors(t *testing.T) {
	view := fanned(t)
	view.Workflow.Context.Fields["large"] = structpb.NewStringValue(strings.Repeat("x", maxValue/3))
	e := NewEvaluator()
	for text, want := range map[string]string{
		"a ${{ build.nope }}":        "spec.list[1].text: evaluate template: 1:7: no such key: nope; parent.build.output is {\"count\":3,\"files\":[\"a.go\",\"b.go\"],\"nested\":{\"key\":\"v\"},\"none\":null,\"ok\":true,\"ratio\":0.5,\"text\":\"t\",\"v..., in ${{ build.nope }}",
		"${{ gone.x }}":              "spec.list[1].text: evaluate template: parent 'gone' is unknown, in ${{ gone.x }}",
		"${{ 1 + 'a' }}":             "spec.list[1].text: 1:4: found no matching overload",
		"${{ parent.build }}":        "choose one of its fields",
		"${{":                        "spec.list[1].text: 1:1: ${{ has no }}",
		"${{ parent.vast.outputs }}": "larger than 8 MiB",
		"${{ workflow.context.large }}${{ workflow.context.large }}${{ workflow.context.large }}":             "the templates give more than 8 MiB",
		"${{ parent.test.stdout.split('').exists(a, parent.test.stdout.split('').exists(b, a + b == 'z')) }}": "cost limit exceeded",
	} {
		spec := jsonObject(t, map[string]any{"list": []any{"ok", map[string]any{"text": text}}})
		got, err := e.Render(t.Context(), "spec", spec, view)
		if got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Render(%.60q) = %v, %v; want %q", text, got, err, want)
		}
		env, err := e.RenderEnv(t.Context(), "env", map[string]string{"A": "fine", "B": text}, view)
		if want = strings.Replace(want, "spec.list[1].text", "env.B", 1); env != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("RenderEnv(%.60q) = %v, %v; want %q", text, env, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Render(ctx, "spec", jsonObject(t, map[string]any{"a": "${{ 1 }}"}), view); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is done: %v", err)
	}
}

// TestTemplateReturnsItsPartsUnchanged checks that an expression may contain anything that CEL allows in literals, and a text
// anything at all, and that the template returns both unchanged.
func TestTemplateReturnsItsPartsUnchanged(t *testing.T) {
	literal := rapid.StringOf(rapid.SampledFrom([]rune("ab $}{\n'/\\é")))
	rapid.Check(t, func(t *rapid.T) {
		var text, want strings.Builder
		for range rapid.IntRange(0, 5).Draw(t, "parts") {
			if rapid.Bool().Draw(t, "expression") {
				value := literal.Draw(t, "value")
				text.WriteString("${{ {'k': " + strings.ReplaceAll(quote(value), "\n", "\\n") + "}['k'] }}")
				want.WriteString(value)
				continue
			}
			value := literal.Draw(t, "text") + "." // no $ before the next ${{
			text.WriteString(strings.ReplaceAll(value, "${{", "$${{"))
			want.WriteString(value)
		}
		r := renderer{kind: Value, ctx: context.Background(), evaluator: NewEvaluator(), room: maxValue}
		got, err := r.text("x", text.String())
		if err != nil {
			t.Fatalf("%q: %v", text.String(), err)
		}
		if diff := cmp.Diff(structpb.NewStringValue(want.String()), got, protocmp.Transform()); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", text.String(), diff)
		}
	})
}
