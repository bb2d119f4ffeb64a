//go:build unix

package shell

import (
	"cmp"
	"fmt"
	"os"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/executortest"
)

func TestConformance(t *testing.T) { conformance(t, portable, false) }

func conformance(t *testing.T, m Mechanism, memory bool) {
	executortest.Run(t, executortest.Harness{
		New:  func(t *testing.T) executor.Executor { return newExecutor(t, Options{Mechanism: m}) },
		Spec: programSpec,
		BadSpecs: map[string]*structpb.Struct{
			"no spec":             nil,
			"no command":          spec(t, map[string]any{}),
			"empty command":       spec(t, map[string]any{"command": ""}),
			"empty list":          spec(t, map[string]any{"command": []any{}}),
			"command is a number": spec(t, map[string]any{"command": 3}),
			"word is a list":      spec(t, map[string]any{"command": []any{"echo", []any{"x"}}}),
			"directory is a list": spec(t, map[string]any{"command": "true", "workingDirectory": []any{}}),
			"unknown field":       spec(t, map[string]any{"command": "true", "interpreter": "bash"}),
			"NUL in a command":    spec(t, map[string]any{"command": "echo \x00"}),
			"NUL in a word":       spec(t, map[string]any{"command": []any{"echo", "\x00"}}),
			"directory is a file": spec(t, map[string]any{"command": "true", "workingDirectory": "/dev/null"}),
			"program is a file":   spec(t, map[string]any{"command": []any{"/etc/passwd"}}),
			"program is a folder": spec(t, map[string]any{"command": []any{"/etc"}}),
			"word is too long":    spec(t, map[string]any{"command": []any{"true", string(make8MiB())}}),
		},
		Left:       leftOf,
		FloodBytes: 64 << 20,
		Many:       20,
		Repeats:    20,
		Stdin:      true,
		Memory:     memory,
	})
}

func make8MiB() []byte {
	b := make([]byte, 8<<20)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

// programSpec returns a spec that runs a program of the suite through `sh -c`.
func programSpec(p executortest.Program) *structpb.Struct {
	fields := map[string]*structpb.Value{"command": structpb.NewStringValue(p.Script())}
	if p.NotFound {
		fields["command"] = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{
			structpb.NewStringValue("switchyard-no-such-program"),
		}})
	}
	if p.Dir != "" {
		fields["workingDirectory"] = structpb.NewStringValue(p.Dir)
	}
	return &structpb.Struct{Fields: fields}
}

func spec(t testing.TB, fields map[string]any) *structpb.Struct {
	t.Helper()
	s, err := specOf(fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newExecutor returns an Executor with the portable mechanism, unless the options name another one.
func newExecutor(t testing.TB, o Options) *Executor {
	t.Helper()
	o.Mechanism = cmp.Or(o.Mechanism, portable)
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

// idPrefix begins the ids of attempts that are the same in each run of a test. The processes of an attempt are found by its id
// on the whole machine, where the tests may run several times at once.
var idPrefix = fmt.Sprintf("t%d", os.Getpid())

func specOf(fields map[string]any) (*structpb.Struct, error) { return structpb.NewStruct(fields) }
