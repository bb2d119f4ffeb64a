package tool

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"switchyard/activities/executor/container"
)

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDefinitionsAreSchemasOfObjects(t *testing.T) {
	tree := newTree(t)
	tools := append(Files(tree), NewShell(tree, ShellOptions{}), NewFetch(FetchOptions{}))
	for _, tool := range tools {
		d := tool.Definition()
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(d.Schema)))
		if err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("schema.json", doc); err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		if _, err := c.Compile("schema.json"); err != nil || doc.(map[string]any)["type"] != "object" || d.Description == "" {
			t.Errorf("%s: %v, %s", d.Name, err, d.Schema)
		}
	}
}

func TestFilesAreWrittenReadAndEdited(t *testing.T) {
	tree := newTree(t)
	tools := Files(tree)
	if out := call(t, named(t, tools, "write_file"), map[string]any{"path": "a/b/c.txt", "content": "one\ntwo\nthree\n"}); out.IsError {
		t.Fatal(out.Text)
	}
	read := named(t, tools, "read_file")
	for _, c := range []struct {
		arguments map[string]any
		want      string
	}{
		{map[string]any{"path": "a/b/c.txt"}, "one\ntwo\nthree\n"},
		{map[string]any{"path": "a/b/c.txt", "offset": 2}, "two\nthree\n"},
		{map[string]any{"path": "a/b/c.txt", "offset": 2, "limit": 1}, "two\n[lines 2 to 2 of a file of 14 bytes; more follows from line 3]"},
		{map[string]any{"path": "a/b/c.txt", "offset": 3, "limit": 1}, "three\n"},
		{map[string]any{"path": "a/b/c.txt", "offset": 4}, "a/b/c.txt has only 3 lines; line 4 does not exist"},
		{map[string]any{"path": "a/b/c.txt", "offset": 9}, "a/b/c.txt has only 3 lines; line 9 does not exist"},
		{map[string]any{"path": tree.Path() + "/a/b/c.txt", "offset": 3}, "three\n"},
		{map[string]any{"path": path.Join(container.WorkspaceDir, WorkDir, "a/b/c.txt"), "offset": 3}, "three\n"},
		{map[string]any{"path": "missing"}, "cannot read missing: no such file or directory"},
		{map[string]any{"path": "a"}, "cannot read a: it is a directory; use list_files"},
		{map[string]any{"path": 3}, `the argument "path" is a number; it must be a string`},
	} {
		if out := call(t, read, c.arguments); out.Text != c.want {
			t.Errorf("read_file %v: %q, want %q", c.arguments, out.Text, c.want)
		}
	}
	edit := named(t, tools, "edit_file")
	for _, c := range []struct {
		arguments map[string]any
		want      string
	}{
		{map[string]any{"path": "a/b/c.txt", "old": "t", "new": "T"}, "the old text occurs 2 times in a/b/c.txt; include more context, or set all"},
		{map[string]any{"path": "a/b/c.txt", "old": "four", "new": "4"}, "the old text does not occur in a/b/c.txt; read the file and use its exact text"},
		{map[string]any{"path": "a/b/c.txt", "old": "two", "new": "2"}, "replaced 1 occurrences in a/b/c.txt"},
		{map[string]any{"path": "a/b/c.txt", "old": "e", "new": "E", "all": true}, "replaced 3 occurrences in a/b/c.txt"},
		{map[string]any{"path": "a/b/c.txt", "old": "", "new": "E"}, `the argument "old" is empty; use write_file for a new file`},
		{map[string]any{"path": "x", "old": "a", "new": "E"}, "cannot edit x: no such file or directory"},
	} {
		if out := call(t, edit, c.arguments); out.Text != c.want {
			t.Errorf("edit_file %v: %q, want %q", c.arguments, out.Text, c.want)
		}
	}
	if out := call(t, read, map[string]any{"path": "a/b/c.txt"}); out.Text != "onE\n2\nthrEE\n" {
		t.Errorf("after the edits: %q", out.Text)
	}
	// Files that the worker creates are open to the user of a container, whatever the worker's umask is.
	for name, want := range map[string]os.FileMode{"a": 0o777, "a/b": 0o777, "a/b/c.txt": 0o666} {
		if info, err := os.Stat(filepath.Join(tree.Path(), name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	call(t, named(t, tools, "write_file"), map[string]any{"path": "run.sh", "content": "#!/bin/sh\n"})
	if info, err := os.Stat(filepath.Join(tree.Path(), "run.sh")); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("a script: %v, %v", info.Mode(), err)
	}
}

func TestReadsAreBounded(t *testing.T) {
	tree := newTree(t)
	read := named(t, Files(tree), "read_file")
	var lines strings.Builder
	for i := 1; lines.Len() < 3*maxRead; i++ {
		fmt.Fprintf(&lines, "line %d\n", i)
	}
	write(t, filepath.Join(tree.Path(), "long"), lines.String())
	write(t, filepath.Join(tree.Path(), "wide"), strings.Repeat("x", 3*maxRead))
	write(t, filepath.Join(tree.Path(), "binary"), "\x7fELF\x00\x00")
	write(t, filepath.Join(tree.Path(), "latin"), "caf\xe9\n")
	write(t, filepath.Join(tree.Path(), "open"), "no line end")
	write(t, filepath.Join(tree.Path(), "empty"), "")
	// Reading page by page returns the whole file.
	var whole strings.Builder
	for next := 1; next > 0; {
		out := call(t, read, map[string]any{"path": "long", "offset": next})
		if out.IsError || len(out.Text) > maxRead+200 {
			t.Fatalf("%d bytes, %v", len(out.Text), out.IsError)
		}
		text, note, more := strings.Cut(out.Text, "[lines ")
		whole.WriteString(text)
		if next = 0; more {
			if _, err := fmt.Sscanf(note[strings.Index(note, "more"):], "more follows from line %d]", &next); err != nil {
				t.Fatal(err)
			}
		}
	}
	if whole.String() != lines.String() {
		t.Error("the pages together are not the file")
	}
	for name, want := range map[string]string{
		"wide": "[line 1 is longer than 64 KiB and was cut", "binary": "not a text file", "latin": "caf\uFFFD\n", "open": "no line end", "empty": "(the file is empty)",
	} {
		if out := call(t, read, map[string]any{"path": name}); !strings.Contains(out.Text, want) || len(out.Text) > maxRead+200 {
			t.Errorf("%s: %.100q", name, out.Text)
		}
	}
	if out := call(t, named(t, Files(tree), "write_file"), map[string]any{"path": "huge", "content": strings.Repeat("x", maxWrite+1)}); !out.IsError {
		t.Error("a file of more than 1 MiB was written")
	}
}

func TestFilesReachNothingOutsideOfTheWorkDirectory(t *testing.T) {
	tree := newTree(t)
	workspace := filepath.Dir(tree.Path())
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"), "hunter2")
	for name, target := range map[string]string{
		"link": filepath.Join(outside, "secret"), "dirlink": outside, "up": "..", "input": "../input.json", "proc": "/proc/self/environ",
	} {
		if err := os.Symlink(target, filepath.Join(tree.Path(), name)); err != nil {
			t.Fatal(err)
		}
	}
	paths := []string{
		"link", "dirlink/secret", "up/input.json", "input", "proc", "../input.json", "a/../../input.json", "/etc/passwd",
		filepath.Join(outside, "secret"), workspace + "/input.json", tree.Path() + "/../input.json", tree.Path() + "2/x", "/switchyard/input.json", "..", "x\x00y", "up/new/file",
	}
	for _, path := range paths {
		for _, tool := range Files(tree) {
			out := call(t, tool, map[string]any{"path": path, "content": "overwritten", "old": "u", "new": "v", "all": true})
			if !out.IsError || strings.Contains(out.Text, "hunter2") || strings.Contains(out.Text, "the task") {
				t.Errorf("%s of %s: %q", tool.Definition().Name, path, out.Text)
			}
		}
	}
	for path, want := range map[string]string{filepath.Join(outside, "secret"): "hunter2", workspace + "/input.json": `{"of":"the task"}`} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for _, path := range []string{filepath.Join(workspace, "new"), filepath.Join(outside, "new")} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}
}

// An agent may remove its work directory, or put anything in its place.
func TestReplacedWorkDirectoryIsNotFollowed(t *testing.T) {
	tree := newTree(t)
	outside := t.TempDir()
	for _, replace := range []func() error{
		func() error { return nil },
		func() error { return os.Symlink(outside, tree.Path()) },
		func() error { return os.Symlink(".", tree.Path()) },
		func() error { return os.WriteFile(tree.Path(), nil, 0o600) },
	} {
		if err := os.RemoveAll(tree.Path()); err != nil {
			t.Fatal(err)
		}
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		if out := call(t, named(t, Files(tree), "write_file"), map[string]any{"path": "x", "content": "y"}); out.IsError {
			t.Error(out.Text)
		}
		if got, err := os.ReadFile(filepath.Join(tree.Path(), "x")); err != nil || string(got) != "y" {
			t.Errorf("%q, %v", got, err)
		}
		for _, dir := range []string{outside, filepath.Dir(tree.Path())} {
			if _, err := os.Lstat(filepath.Join(dir, "x")); err == nil {
				t.Errorf("written to %s", dir)
			}
		}
	}
}

func TestListsMatchPatterns(t *testing.T) {
	tree := newTree(t)
	for _, name := range []string{"a.go", "src/b.go", "src/deep/er/c.go", "src/deep/er/c.txt"} {
		if out := call(t, named(t, Files(tree), "write_file"), map[string]any{"path": name, "content": "x"}); out.IsError {
			t.Fatal(out.Text)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(tree.Path(), "src", "link")); err != nil {
		t.Fatal(err)
	}
	list := named(t, Files(tree), "list_files")
	for _, c := range []struct {
		arguments map[string]any
		want      string
	}{
		{map[string]any{}, "a.go (1 bytes)\nsrc/\n"},
		{map[string]any{"path": "src"}, "b.go (1 bytes)\ndeep/\nlink -> /etc/passwd\n"},
		{map[string]any{"pattern": "*.go"}, "a.go (1 bytes)\nsrc/b.go (1 bytes)\nsrc/deep/er/c.go (1 bytes)\n"},
		{map[string]any{"pattern": "src/**/*.go"}, "src/b.go (1 bytes)\nsrc/deep/er/c.go (1 bytes)\n"},
		{map[string]any{"pattern": "src/*"}, "src/b.go (1 bytes)\nsrc/deep/\nsrc/link -> /etc/passwd\n"},
		{map[string]any{"pattern": "**/er/*"}, "src/deep/er/c.go (1 bytes)\nsrc/deep/er/c.txt (1 bytes)\n"},
		{map[string]any{"path": "src/deep", "pattern": "*.txt"}, "er/c.txt (1 bytes)\n"},
		{map[string]any{"pattern": "*.c"}, "(nothing)"},
		{map[string]any{"pattern": "[a"}, "the pattern [a is malformed"},
		{map[string]any{"path": "nowhere"}, "cannot list nowhere: no such file or directory"},
	} {
		if out := call(t, list, c.arguments); out.Text != c.want {
			t.Errorf("%v: %q, want %q", c.arguments, out.Text, c.want)
		}
	}
	for i := range maxList + 5 {
		write(t, filepath.Join(tree.Path(), fmt.Sprintf("many-%04d", i)), "")
	}
	if out := call(t, list, map[string]any{}); strings.Count(out.Text, "\n") != maxList+1 || !strings.Contains(out.Text, "only the first 1000") {
		t.Errorf("%d lines", strings.Count(out.Text, "\n"))
	}
}

func TestBrokenArgumentsAreReportedToTheModel(t *testing.T) {
	tree := newTree(t)
	for _, tool := range append(Files(tree), NewShell(tree, ShellOptions{}), NewFetch(FetchOptions{})) {
		for _, arguments := range []string{`{"path":`, `[]`, `"x"`, `7`, "\x00", `{"path":{},"command":{}}`} {
			out, err := tool.Call(t.Context(), Call{Arguments: json.RawMessage(arguments)})
			if err != nil || !out.IsError || out.Text == "" {
				t.Errorf("%s %s: %+v, %v", tool.Definition().Name, arguments, out, err)
			}
		}
	}
}
