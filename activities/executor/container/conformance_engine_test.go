//go:build engines

package container_test

import (
	"path"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/container/enginetest"
	"switchyard/activities/executor/executortest"
)

func TestConformance(t *testing.T) {
	image := enginetest.Image(t)
	executortest.Run(t, executortest.Harness{
		New:  func(t *testing.T) executor.Executor { return newExecutor(t, containers.Options{}) },
		Spec: func(p executortest.Program) *structpb.Struct { return programSpec(t, image, p) },
		BadSpecs: map[string]*structpb.Struct{
			"no spec":               nil,
			"no image":              spec(t, map[string]any{"command": "true"}),
			"empty command":         spec(t, map[string]any{"image": image, "command": ""}),
			"empty list":            spec(t, map[string]any{"image": image, "command": []any{}}),
			"command is a number":   spec(t, map[string]any{"image": image, "command": 3}),
			"word is a list":        spec(t, map[string]any{"image": image, "command": []any{"echo", []any{"x"}}}),
			"unknown field":         spec(t, map[string]any{"image": image, "shell": "bash"}),
			"NUL in a command":      spec(t, map[string]any{"image": image, "command": "echo \x00"}),
			"relative directory":    spec(t, map[string]any{"image": image, "command": "true", "workingDirectory": "a/b"}),
			"directory is a file":   spec(t, map[string]any{"image": image, "command": "true", "workingDirectory": "/etc/passwd"}),
			"program is a file":     spec(t, map[string]any{"image": image, "command": []any{"/etc/passwd"}}),
			"program is a folder":   spec(t, map[string]any{"image": image, "command": []any{"/etc"}}),
			"no such user":          spec(t, map[string]any{"image": image, "command": "true", "user": "nobody-here"}),
			"no such limit":         spec(t, map[string]any{"image": image, "command": "true", "ulimits": []any{map[string]any{"name": "wishes", "soft": 3}}}),
			"entrypoint and string": spec(t, map[string]any{"image": image, "command": "true", "entrypoint": "sh"}),
			"options of a bucket":   spec(t, map[string]any{"image": image, "command": "true", "imageTarball": "s3://bucket/a.tar?endpoint=http://127.0.0.1:1"}),
			"label of ours":         spec(t, map[string]any{"image": image, "command": "true", "labels": map[string]any{"switchyard.run": "x"}}),
		},
		Left: func(t *testing.T, id string) (names []string) {
			for _, c := range enginetest.Left(t, id) {
				names = append(names, c.Names[0]+" "+c.State)
			}
			return names
		},
		FloodBytes: 16 << 20,
		Many:       4,
		Repeats:    2,
		DefaultDir: "/",
		OnlyCodes:  true,
		Image:      true,
		Memory:     true,
		Abandon:    func(t *testing.T, a executor.Attempt, ready string) { abandon(t, "", a, ready) },
	})
}

// programSpec returns a spec that runs a program of the suite with the image's
// shell.
func programSpec(t *testing.T, image string, p executortest.Program) *structpb.Struct {
	fields := map[string]any{"image": image, "command": p.Script(), "network": "none"}
	if p.NotFound {
		fields["command"] = []any{"switchyard-no-such-program"}
	}
	if p.Dir != "" {
		if !path.IsAbs(p.Dir) {
			return nil // an engine creates missing working directories
		}
		fields["workingDirectory"] = p.Dir
	}
	return spec(t, fields)
}

func spec(t testing.TB, fields map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newExecutor(t testing.TB, o containers.Options) *containers.Executor {
	t.Helper()
	e, err := containers.New(o)
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
