package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"switchyard/activities/executor/shell"
	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	shell.ServeIfAsked()
	testneeds.Parallel(4)
	testneeds.NoLeaks(m)
}

// newWorkspace creates the workspace of an attempt as a worker does: in a folder of its own.
func newWorkspace(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "private", "attempt-1")
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "input.json"), []byte(`{"of":"the task"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func newTree(t testing.TB) *Tree {
	t.Helper()
	tree, err := NewTree(newWorkspace(t))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// call calls a tool with arguments.
func call(t testing.TB, tool Tool, arguments map[string]any) Outcome {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	out, err := tool.Call(t.Context(), Call{ID: "call-1", Arguments: raw})
	if err != nil {
		t.Fatalf("%s %s: %v", tool.Definition().Name, raw, err)
	}
	return out
}

// named returns a tool by name.
func named(t testing.TB, tools []Tool, name string) Tool {
	t.Helper()
	for _, tool := range tools {
		if tool.Definition().Name == name {
			return tool
		}
	}
	t.Fatalf("there is no tool %s", name)
	return nil
}
