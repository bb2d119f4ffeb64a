//go:build engines

package container_test

import (
	"context"
	"path"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/container/enginetest"
	"switchyard/activities/executor/executortest"
	"switchyard/dev/testneeds"
)

func TestConformance(t *testing.T) { conformance(t, 16<<20, 4, 2) }

func TestLongConformance(t *testing.T) {
	testneeds.Long(t)
	conformance(t, 100<<20, 20, 20)
}

func conformance(t *testing.T, floodBytes int64, many, repeats int) {
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
		Left:       left,
		FloodBytes: floodBytes,
		Many:       many,
		Repeats:    repeats,
		DefaultDir: "/",
		OnlyCodes:  true,
		Image:      true,
		Memory:     true,
		Abandon:    func(t *testing.T, a executor.Attempt, ready string) { abandon(t, "", a, ready) },
	})
}

// left returns the names of an attempt's containers.
func left(t *testing.T, id string) []string {
	t.Helper()
	found, err := enginetest.Engine(t).ContainerList(context.Background(), container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("label", "switchyard.id="+id)),
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range found {
		names = append(names, c.Names[0]+" "+c.State)
	}
	return names
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
