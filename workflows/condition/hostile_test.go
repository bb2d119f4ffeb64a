package condition

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hostile returns expressions that try to use unlimited time or memory.
func hostile() map[string]string {
	chain := func(seed, step, end string) string { return seed + strings.Repeat(step, 15) + end }
	characters := "parent.test.stdout.split('')"
	return map[string]string{
		"loop in loop":         characters + ".exists(a, " + characters + ".exists(b, a + b == 'z'))",
		"loops over literals":  characters + ".exists(a, [1,2,3,4,5,6,7,8,9].exists(b, [1,2,3,4,5,6,7,8,9].exists(c, b * c == 0)))",
		"search in loop":       characters + ".exists(c, parent.test.stdout.contains(c + 'q'))",
		"slow search":          "parent.test.stdout.indexOf(parent.test.stdout.substring(0, 30000) + 'c') == 1",
		"regex program":        "parent.test.stdout.matches('[ab]*a[ab]{900}c')",
		"regex in loop":        characters + ".exists(c, parent.test.stdout.matches('([ab]*){20}c'))",
		"made regex in loop":   characters + ".all(c, 'ab'.matches(c + '|[ab]{900}'))",
		"text doubles":         chain("[parent.test.stdout]", ".map(x, x + x + x + x)", ".size() == 1"),
		"list doubles":         chain("[[1]]", ".map(x, x + x + x + x)", ".size() == 1"),
		"doubled list equal":   chain("[[1]]", ".map(x, x + x)", ".exists(l, l + l + l + l + l + l + l + l == l)"),
		"shared list equal":    chain("[[1]]", ".map(x, [x, x, x, x])", ".exists(l, l == l)"),
		"shared list searched": chain("[dyn([1])]", ".map(x, [x, x, x, x])", ".contains([dyn(1)]) || true"),
		"shared list printed":  "'%s'.format([" + chain("[dyn([1])]", ".map(x, dyn([x, x, x, x]))", "") + "]) == ''",
		"replace":              "parent.test.stdout.replace('', parent.test.stdout) == ''",
		"join":                 characters + ".join(parent.test.stdout) == ''",
		"join of one text":     characters + ".map(c, parent.test.stdout).join() == ''",
		"texts kept":           characters + ".map(c, parent.test.stdout + c).size() == 1",
		"lists kept":           characters + ".map(c, parent.test.stdout.split(c)).size() == 1",
		"literals kept":        characters + ".map(c, [" + strings.Repeat("1,", 199) + "c]).size() == 1",
		"time zones":           characters + ".exists(c, timestamp(0).getHours('Asia/Tokyo') == 1)",
		"long numbers":         characters + ".exists(c, '%.100f'.format([1.0 / 3.0]) == c)",
	}
}

// TestHostileExpressionsEndEarly checks that these expressions end early with an error and with bounded memory, and that `||
// true` cannot hide the error.
func TestHostileExpressionsEndEarly(t *testing.T) {
	e, view := NewEvaluator(), sample(t)
	for name, expr := range hostile() {
		t.Run(name, func(t *testing.T) {
			spent, allocated := cpu(t), allocations()
			got, err := e.Evaluate(t.Context(), "("+expr+") || true", view)
			spent, allocated = cpu(t)-spent, allocations()-allocated
			if got || err == nil || !strings.Contains(err.Error(), "cost limit exceeded") {
				t.Errorf("got %v, %v", got, err)
			}
			// It takes 0.1 s at most; the race detector makes that 3 s, and a slow machine 15 s.
			if spent > time.Minute {
				t.Errorf("took %v of CPU time", spent)
			}
			if allocated > 64<<20 {
				t.Errorf("allocated %d MiB", allocated>>20)
			}
			t.Logf("%v of CPU time, %d KiB", spent, allocated>>10)
		})
	}
}

// cpu returns the CPU time of the process so far. Unlike the clock, it does not advance while other processes run.
func cpu(t *testing.T) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func allocations() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// TestHostileValuesEndEarly checks that a value that is small during evaluation but vast once it is written out ends early
// with an error and with bounded memory.
func TestHostileValuesEndEarly(t *testing.T) {
	e, view := NewEvaluator(), fanned(t)
	chain := func(seed, step string) string { return seed + strings.Repeat(step, 12) }
	for name, expr := range map[string]string{
		"shared lists":  chain("[[1]]", ".map(x, [x, x, x, x])"),
		"shared maps":   chain("[{'k': 1}]", ".map(x, {'a': x, 'b': x, 'c': x, 'd': x})"),
		"shared text":   chain("[parent.test.stdout]", ".map(x, [x, x])"),
		"shared output": chain("[parent.build.output]", ".map(x, [x, x, x, x])"),
		"long keys":     chain("[{'"+strings.Repeat("k", 1000)+"': 1}]", ".map(x, {'a': x, 'b': x, 'c': x, 'd': x})"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []Kind{Items, CacheKey, Value} {
				spent, allocated := cpu(t), allocations()
				err := evaluateKind(t.Context(), e, expr, kind, view)
				spent, allocated = cpu(t)-spent, allocations()-allocated
				if err == nil || !strings.Contains(err.Error(), "larger than 8 MiB") {
					t.Errorf("got %v", err)
				}
				if spent > time.Minute {
					t.Errorf("took %v of CPU time", spent)
				}
				if allocated > 256<<20 {
					t.Errorf("allocated %d MiB", allocated>>20)
				}
				t.Logf("%v of CPU time, %d KiB", spent, allocated>>10)
			}
		})
	}
}
