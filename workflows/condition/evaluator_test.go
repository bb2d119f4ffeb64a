package condition

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func jsonObject(t testing.TB, fields map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sample returns the view of the tests: build completed, test failed with 64 KiB of output, and notify-failure never ran.
func sample(t testing.TB) View {
	return View{
		Parents: map[string]*historyv1.ParentView{
			"build": {State: "completed", Result: &v1.TaskResult{
				Stdout: "ok\n0 failures\n",
				Output: jsonObject(t, map[string]any{
					"count": 3, "ratio": 0.5, "ok": true, "none": nil, "text": "t", "version": "1.2.3",
					"files": []any{"a.go", "b.go"}, "nested": map[string]any{"key": "v"},
				}),
			}},
			"test": {State: "dead_letter", Result: &v1.TaskResult{
				ExitCode: 2, Stdout: strings.Repeat("ab", 32<<10), Stderr: strings.Repeat("a line of output\n", 3800), StdoutTruncated: true,
			}},
			"notify-failure": {State: "skipped"},
		},
		Workflow: &historyv1.WorkflowView{
			Name: "release", RunId: "release-4f2", Context: jsonObject(t, map[string]any{"env": "prod"}),
			Input: jsonObject(t, map[string]any{"dry": false}),
		},
	}
}

func TestEvaluate(t *testing.T) {
	tests := map[string]bool{
		"":      true,
		" \n\t": true,
		"parent.build.exitCode === 0 && parent.build.result.stdout.includes('0 failures')": true,
		"parent.build.exitCode !== 0":                                                       false,
		"parent.build.exitCode == 0 && parent.test.exitCode == 0":                           false,
		"parent.build.exitCode == 0 || parent.test.exitCode == 0":                           true,
		`parent.build.stdout.matches('\\d+ failures')`:                                      true,
		`/^\d+ FAILURES$/im.test(parent.build.stdout)`:                                      true,
		`!/[1-9]\d* failures/.test(parent.build.stdout)`:                                    true,
		`/a\/b'\\"[/]/.test("a/b'\\\"/")`:                                                   true,
		"workflow.context.env == 'prod'":                                                    true,
		"workflow.context.env === 'test'":                                                   false,
		"workflow.name == 'release' && workflow.runId == 'release-4f2'":                     true,
		"workflow.input.dry == false && workflow.input == {'dry': false}":                   true,
		"parent.test.state == 'dead_letter' && parent.test.stdoutTruncated":                 true,
		"parent.test.result.stderrTruncated":                                                false,
		"parent['notify-failure'].exitCode == -1":                                           true,
		"parent['notify-failure'].stdout == '' && parent['notify-failure'].output == {}":    true,
		"parent['notify-failure'].result.state == 'skipped'":                                true,
		"parent.exists(t, parent[t].state == 'skipped')":                                    true,
		"parent.all(t, parent[t].exitCode == 0)":                                            false,
		"has(parent.build.output.nested.key) && !has(parent.build.output.nope)":             true,
		"has(parent.test.output.key)":                                                       false,
		"parent.build.output.count == 3 && parent.build.output.count != 4":                  true,
		"parent.build.output.count > 2 && parent.build.output.ratio < 1":                    true,
		"parent.build.output.count >= parent.test.exitCode":                                 true,
		"parent.build.output.count in [1, 2, 3]":                                            true,
		"parent.build.output.ok":                                                            true,
		"parent.build.output.none == null":                                                  true,
		"parent.build.output.files.includes('a.go') && 'b.go' in parent.build.output.files": true,
		"parent.build.output.files.includes('c.go')":                                        false,
		"parent.build.output.files.exists(f, f.endsWith('.go'))":                            true,
		"parent.build.output.files[0] == 'a.go' && size(parent.build.output.files) == 2":    true,
		"parent.build.output.version.split('.')[0] == '1'":                                  true,
		"parent.build.stdout.trim().upperAscii().startsWith('OK')":                          true,
		"dyn(parent.build).exitCode == 0 && dyn(parent.build).result.state == 'completed'":  true,
		"has(dyn(parent.build).stdout) && !has(dyn(parent.build).nope)":                     true,
		"parent.build == parent.build && parent.build != parent.test":                       true,
		"type(parent.build) == type(parent.test)":                                           true,
		"parent.test.stderr.split('\\n').filter(l, l != '').all(l, l.matches('^a line'))":   true,
		"parent.test.stderr.lowerAscii().contains('nowhere')":                               false,
		"math.greatest(parent.test.exitCode, 1) == 2":                                       true,
		"1 / 0 == 1 || true": true,
	}
	e, view := NewEvaluator(), sample(t)
	for expr, want := range tests {
		if got, err := e.Evaluate(t.Context(), expr, view); err != nil || got != want {
			t.Errorf("Evaluate(%q) = %v, %v; want %v", expr, got, err, want)
		}
	}
}

func TestEvaluateErrors(t *testing.T) {
	tests := map[string]string{
		"parent.gone.exitCode == 0":                     "parent 'gone' is unknown",
		"true || parent.gone.exitCode == 0":             "parent 'gone' is unknown",
		"parent[workflow.name].exitCode == 0":           "no such key: release",
		"parent.build.output.nope == 1":                 "1:20: no such key: nope",
		"true && parent.build.output.text + 1 == 4":     "1:34: no such overload (both sides must be of one type",
		"parent.build.output.ratio % 2 == 0":            "1:27: no such overload",
		"parent.build.output.text":                      "must be true or false; this one is of type string",
		"parent.build.output.files[2] == ''":            "index out of bounds: 2",
		"parent.build.output.text.matches('(' + 'a')":   "missing closing )",
		"dyn(parent.build).nope == 1":                   "no such field: nope",
		"parent.build.exitcode == 0":                    "undefined field",
		"process.exit(1)":                               "CEL has no process",
		"int(parent.build.output.text) == 1":            "type conversion error",
		"1 / (parent.build.exitCode + 0) == 1":          "division by zero",
		"parent.build.output.files.contains('x') + 'x'": "no matching overload",
	}
	e, view := NewEvaluator(), sample(t)
	for expr, want := range tests {
		got, err := e.Evaluate(t.Context(), expr, view)
		if got || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Evaluate(%q) = %v, %v; want false and %q", expr, got, err, want)
		}
	}
	_, err := e.Evaluate(t.Context(), "1 +", view)
	if _, ok := errors.AsType[*Error](err); !ok {
		t.Errorf("got %T, want an *Error", err)
	}
}

// TestViewNeedsOnlyTheParentsThatAreRead checks that a view needs nothing but the parents that the expression reads.
func TestViewNeedsOnlyTheParentsThatAreRead(t *testing.T) {
	view := View{Parents: map[string]*historyv1.ParentView{"a": nil}}
	expr := "parent.a.exitCode == -1 && size(parent.a.state) == 0 && workflow.name == '' && workflow.context == {} && !has(workflow.input.x)"
	if got, err := NewEvaluator().Evaluate(t.Context(), expr, view); !got || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestEvaluateContext(t *testing.T) {
	e, view := NewEvaluator(), sample(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Evaluate(ctx, "true", view); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is done: %v", err)
	}
	loop := "parent.test.stdout.split('').exists(c, c == 'z')"
	if _, err := e.Evaluate(doneMeanwhile{t.Context(), new(atomic.Bool)}, loop, view); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a context that is done meanwhile: %v", err)
	}
}

// doneMeanwhile is a context that ends right after it was found not to be done.
type doneMeanwhile struct {
	context.Context
	asked *atomic.Bool
}

func (doneMeanwhile) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (c doneMeanwhile) Err() error {
	if c.asked.Swap(true) {
		return context.DeadlineExceeded
	}
	return nil
}

// TestEvaluatorIsSafeForConcurrentUse shares one Evaluator with a small cache among goroutines, for the race detector.
func TestEvaluatorIsSafeForConcurrentUse(t *testing.T) {
	e, view := &Evaluator{programs: cache[written, *program]{entries: 4, text: 1 << 10}}, sample(t)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 50 {
				n := (worker + i) % 6
				expr := fmt.Sprintf("parent.test.exitCode == %d && parent.build.stdout.matches('x{%d}' + workflow.name)", n, n)
				if got, err := e.Evaluate(t.Context(), expr, view); got || err != nil {
					t.Errorf("Evaluate(%q) = %v, %v", expr, got, err)
				}
			}
		})
	}
	group.Wait()
	if n := len(e.programs.made); n > 4 {
		t.Errorf("the cache holds %d programs", n)
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := cache[string, bool]{entries: 3, text: 10}
	for _, put := range []struct {
		text string
		kept int
	}{{"aaa", 1}, {"bbb", 2}, {"aaa", 2}, {"ccc", 3}, {"d", 1}, {"eeeeeeeee", 2}, {"ff", 1}} {
		c.put(put.text, len(put.text), true)
		if _, ok := c.get(put.text); !ok || len(c.made) != put.kept {
			t.Errorf("after %s it holds %v, want %d", put.text, c.made, put.kept)
		}
	}
}

const benchmarked = "parent.build.exitCode === 0 && parent.build.result.stdout.includes('0 failures')"

func BenchmarkCheck(b *testing.B) {
	scope := Scope{Task: "deploy", Ancestors: []string{"build"}, Tasks: []string{"build", "deploy"}}
	for b.Loop() {
		if _, err := Check(benchmarked, scope); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	view := sample(b)
	for b.Loop() {
		if ok, err := NewEvaluator().Evaluate(b.Context(), benchmarked, view); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	e, view := NewEvaluator(), sample(b)
	for b.Loop() {
		if ok, err := e.Evaluate(b.Context(), benchmarked, view); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
