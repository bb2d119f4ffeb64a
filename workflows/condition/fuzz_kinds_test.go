package condition

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// everything returns a view in which all ancestors of wide are known.
func everything(t testing.TB) View {
	view := fanned(t)
	view.Parents["lint"], view.Parents["process"] = view.Parents["test"], view.Parents["build"]
	view.Parents["list-files"] = view.Parents["build"]
	view.Attempt = &historyv1.AttemptView{Number: 1, State: "failed", Reason: "exit_code"}
	return view
}

// evaluateKind evaluates an expression as one of a kind.
func evaluateKind(ctx context.Context, e *Evaluator, expr string, kind Kind, view View) (err error) {
	switch kind {
	case Condition:
		_, err = e.Evaluate(ctx, expr, view)
	case Count:
		_, err = e.Count(ctx, expr, view)
	case Items:
		_, err = e.Items(ctx, expr, view)
	case CacheKey:
		_, err = e.Key(ctx, expr, view)
	case Retry:
		_, err = e.Retry(ctx, expr, view)
	case Notify:
		_, err = e.Applies(ctx, expr, view)
	case Message:
		_, err = e.RenderMessage(ctx, templateStart+expr+templateEnd, view)
	default:
		_, err = e.Value(ctx, expr, view)
	}
	return err
}

// inside checks that an error has a message and a position in a text.
func inside(t *testing.T, text string, err error) {
	t.Helper()
	problem, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("got %T: %v", err, err)
	}
	if problem.Message == "" || strings.Contains(problem.Message, "\n") || !utf8.ValidString(problem.Message) {
		t.Errorf("message %q", problem.Message)
	}
	if !utf8.ValidString(text) || len(text) > maxLength {
		return
	}
	lines := strings.Split(text, "\n")
	if problem.Line < 1 || problem.Line > len(lines) {
		t.Fatalf("line %d of %d: %v", problem.Line, len(lines), err)
	}
	if n := utf8.RuneCountInString(lines[problem.Line-1]); problem.Column < 1 || problem.Column > n+1 {
		t.Errorf("column %d of %d: %v", problem.Column, n, err)
	}
}

// FuzzKinds treats any text as an expression of any kind: nothing panics, errors lie inside the expression, and an Evaluator
// compiles everything that Check accepts and reads only what is among its references.
func FuzzKinds(f *testing.F) {
	for _, seed := range []string{
		"discover.files", "build.files", "build['files'][0]", "build.count + 1.0", "[1].map(build, build)", "has(build.x.y)",
		"parent.each.outputs.map(o, o.size)", "parent.build.count", "each.count", "list-files.x", "build . files", "build", ".build.x",
		"build.files.map(f, {'f': f, 'n': lint.x})", "attempt.exitCode in [1, 2]", "input.item + workflow.input['channel']", "process.env.X",
		"build[build.text]", "parent[build.text].output", "strings.quote(build.text)", "math.greatest(build.count, 2)", "type(build.x)",
		"int.x", "google.protobuf.Timestamp{}", "build{}", "build.x{}", "[build.x, {build.text: build.x}]", "build?.x", "build.`x-y`",
		"", "true", "parent.build.exitCode === 0 && parent.lint.result.stdout.includes('0 failures')",
		"/a[/]b/gi.test(parent.build.stdout)", "parent.notify-failure.exitCode !== 1", "parent['lint'].output.x[0] > 1.5e3",
		"parent.exists(t, parent[t].state in ['failed'])", "`${x}`", "a?.b ?? c", "[1, 2].map(x, x * 2) == {'k': r'\\d'}",
		"'''a\n'b''' == \"\\u00e9\"", "has(parent.build.output.x) ? true : 1/0 == 1", "x => {", "// only a comment", "é.ö == '𝄞'\n\n&& 1",
		"'%s'.format([timestamp(0)]).matches('a{2,}')", "dyn(parent).build", "/(/.test(", "\x00\xff",
	} {
		for kind := Condition; kind <= Value; kind++ {
			f.Add(seed, byte(kind))
		}
	}
	e, view := NewEvaluator(), everything(f)
	f.Fuzz(func(t *testing.T, expr string, of byte) {
		scope := wide(Kind(of) % (Value + 1))
		references, err := Check(expr, scope)
		if err != nil {
			inside(t, expr, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		known := view
		known.Parents = map[string]*historyv1.ParentView{}
		for _, name := range references {
			if !slices.Contains(scope.Ancestors, name) {
				t.Errorf("%s is no ancestor", name)
			}
			known.Parents[name] = view.Parents[name]
		}
		failed := evaluateKind(ctx, e, expr, scope.Kind, known)
		if err != nil {
			return
		}
		if _, ok := errors.AsType[*Error](failed); ok {
			t.Errorf("accepted, but does not compile: %v", failed)
		}
		if failed != nil && strings.Contains(failed.Error(), "' is unknown") {
			t.Errorf("references %v: %v", references, failed)
		}
	})
}

// FuzzTemplate treats any text as a template: nothing panics, errors lie inside the text, and everything that CheckTemplate
// accepts is rendered if the values allow it.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		"", "plain", "${{ build.files }}", "a ${{ 'x' }} b", "$${{ x }}", "${{ '}}' }}", "${{ {'a': {'b': 1}}.a.b }}", "${{", "}}", "${{}}", "${{ 'x }}",
		"${{ /}}/.test(build.text) }}", "${{ parent.each.outputs }}", "${{ build.x // }}\n }}", "é${{ 'é' + 1 }}", "${{ `x` }}", "$${{${{1}}", "${{ r'\\' }}", "${{'''\n}}'''}}",
		"${{ build.files.map(f, f) }}${{ input }}", "${{ 1 }}}}", "\xff${{ 1 }}", "${{ \xff }}",
	} {
		f.Add(seed)
	}
	e, view := NewEvaluator(), everything(f)
	f.Fuzz(func(t *testing.T, text string) {
		references, err := CheckTemplate(text, wide(Value))
		if err != nil {
			inside(t, text, err)
		}
		known := view
		known.Parents = map[string]*historyv1.ParentView{}
		for _, name := range references {
			known.Parents[name] = view.Parents[name]
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		rendered, failed := e.RenderEnv(ctx, "env", map[string]string{"X": text}, known)
		if err == nil {
			if _, ok := errors.AsType[*Error](failed); ok || failed != nil && strings.Contains(failed.Error(), "' is unknown") {
				t.Errorf("accepted, but: %v", failed)
			}
		}
		if !HasTemplate(text) && rendered["X"] != text {
			t.Errorf("without a template it became %q", rendered["X"])
		}
		if !utf8.ValidString(text) {
			return // no proto can hold it
		}
		spec := jsonObject(t, map[string]any{"a": []any{text}})
		before := proto.CloneOf(spec)
		if _, again := e.Render(ctx, "spec", spec, known); (again == nil) != (failed == nil) {
			t.Errorf("in env: %v; in spec: %v", failed, again)
		}
		if !proto.Equal(before, spec) {
			t.Error("the spec was changed")
		}
	})
}
