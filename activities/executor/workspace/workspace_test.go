package workspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/interpreter"
)

func newStruct(t testing.TB, fields map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func object(t testing.TB, fields map[string]any) *structpb.Value {
	t.Helper()
	return structpb.NewStructValue(newStruct(t, fields))
}

func list(t testing.TB, items ...any) *structpb.Value {
	t.Helper()
	l, err := structpb.NewList(items)
	if err != nil {
		t.Fatal(err)
	}
	return structpb.NewListValue(l)
}

func newInput(t testing.TB, fields map[string]any) *Input {
	t.Helper()
	in, err := NewInput(newStruct(t, fields), nil, nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func prepare(t testing.TB, root string, r Request) *Workspace {
	t.Helper()
	w, err := NewRoot(root, "").Prepare(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(w.Close(), w.Close()); err != nil { // a second Close does nothing
			t.Error(err)
		}
	})
	return w
}

func TestEnvHoldsTheContract(t *testing.T) {
	item, numa := structpb.NewStringValue("a b"), 1
	full := Request{
		RunID: "build-x1", Workflow: "build", Task: "test", TaskID: "build-x1/test", Attempt: 2, Node: "n1",
		Index: 3, Count: 4, Item: item, NUMANode: &numa, SharedDir: "/shared",
		Env: map[string]string{
			"CI": "true", "SWITCHYARD_TASK": "forged", "SWITCHYARD_CLAIM": "forged", "SWITCHYARD_ANYTHING": "forged",
			"SWITCHYARD_GATEWAY": "http://gw", "SWITCHYARD_TOKEN": "mine",
		},
	}
	w := prepare(t, t.TempDir(), full)
	in := func(name string) string { return filepath.Join(w.Dir(), name) }
	want := map[string]string{
		"CI": "true", "SWITCHYARD_GATEWAY": "http://gw", "SWITCHYARD_TOKEN": "mine",
		"SWITCHYARD_RUN_ID": "build-x1", "SWITCHYARD_WORKFLOW": "build", "SWITCHYARD_TASK": "test",
		"SWITCHYARD_TASK_ID": "build-x1/test", "SWITCHYARD_ATTEMPT": "2", "SWITCHYARD_NODE": "n1",
		"SWITCHYARD_INDEX": "3", "SWITCHYARD_COUNT": "4", "SWITCHYARD_ITEM": "a b", "SWITCHYARD_TARGET_NUMA_NODE": "1",
		"SWITCHYARD_INPUT": in("input.json"), "SWITCHYARD_OUTPUT": in("output"),
		"SWITCHYARD_CONTEXT_UPDATE": in("context-update"), "SWITCHYARD_CHECKPOINT": in("checkpoint"),
		"SWITCHYARD_SHARED_DIR": "/shared", "SWITCHYARD_LOCAL_TEMP_DIR": in("tmp"),
	}
	if diff := cmp.Diff(want, w.Env()); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	env := prepare(t, t.TempDir(), Request{Task: "t"}).Env()
	for _, name := range []string{"ITEM", "TARGET_NUMA_NODE", "SHARED_DIR", "WORKFLOW"} {
		if value, set := env["SWITCHYARD_"+name]; set {
			t.Errorf("%s is set to %q for a task that has none", name, value)
		}
	}
	if env["SWITCHYARD_INDEX"] != "0" || env["SWITCHYARD_COUNT"] != "1" {
		t.Errorf("index %s of %s, want 0 of 1", env["SWITCHYARD_INDEX"], env["SWITCHYARD_COUNT"])
	}
}

func TestPrepareCreatesThePrivateDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	w := prepare(t, filepath.Join("not", "there", "yet"), Request{Task: "t"})
	if !filepath.IsAbs(w.Dir()) {
		t.Errorf("%s is not absolute", w.Dir())
	}
	for name, mode := range map[string]os.FileMode{".": os.ModeDir | 0o700, "tmp": os.ModeDir | 0o700, "input.json": 0o600} {
		info, err := os.Stat(filepath.Join(w.Dir(), name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, error %v, want %v", name, info.Mode(), err, mode)
		}
	}
	for _, name := range []string{"output", "context-update", "checkpoint"} {
		if _, err := os.Lstat(filepath.Join(w.Dir(), name)); err == nil {
			t.Errorf("%s is there already", name)
		}
	}
	if other := prepare(t, filepath.Join("not", "there", "yet"), Request{Task: "t"}); other.Dir() == w.Dir() {
		t.Error("two attempts share a directory")
	}
}

func TestInputMergesItsSources(t *testing.T) {
	for name, test := range map[string]struct {
		input     *structpb.Struct
		parents   map[string]*structpb.Value
		ancestors map[string]any
		context   *structpb.Struct
		run       *structpb.Struct
		request   Request
		want      string
	}{
		"nothing": {want: `{}`},
		"ancestors": {
			parents:   map[string]*structpb.Value{"build": object(t, nil)},
			ancestors: map[string]any{"build": map[string]any{"state": "failed", "exitCode": int32(2)}, "up": map[string]any{"state": "skipped"}},
			want:      `{"ancestors":{"build":{"exitCode":2,"state":"failed"},"up":{"state":"skipped"}},"build":{}}`,
		},
		"input and parents": {
			input: newStruct(t, map[string]any{"n": 3, "list": []any{"a", nil, true}, "html": "<&>"}),
			parents: map[string]*structpb.Value{
				"build": object(t, map[string]any{"version": "1.2"}), "empty": object(t, nil),
				"each": list(t, map[string]any{"a": 1}, nil),
			},
			want: `{"build":{"version":"1.2"},"each":[{"a":1},null],"empty":{},"html":"<&>","list":["a",null,true],"n":3}`,
		},
		"own key wins": {
			input:   newStruct(t, map[string]any{"build": "mine"}),
			parents: map[string]*structpb.Value{"build": object(t, map[string]any{"x": 1})},
			want:    `{"build":"mine"}`,
		},
		"run": {
			context: newStruct(t, map[string]any{"channel": "beta"}), run: newStruct(t, map[string]any{"who": "me"}),
			want: `{"context":{"channel":"beta"},"inputs":{"who":"me"}}`,
		},
		"instance": {
			input:   newStruct(t, map[string]any{"n": 3}),
			request: Request{Index: 0, Count: 2, Item: list(t, "a", 1)},
			want:    `{"n":3,"item":["a",1],"index":0,"count":2}`,
		},
		"instance without item": {request: Request{Index: 1, Count: 2}, want: `{"index":1,"count":2}`},
		"words that are taken": {
			input:     newStruct(t, map[string]any{"index": "i", "context": "c"}),
			parents:   map[string]*structpb.Value{"item": object(t, nil), "inputs": object(t, nil), "ancestors": object(t, nil)},
			ancestors: map[string]any{"ancestors": map[string]any{"state": "completed"}},
			context:   newStruct(t, map[string]any{"channel": "beta"}), run: newStruct(t, map[string]any{"who": "me"}),
			request: Request{Index: 1, Count: 2, Item: structpb.NewNullValue()},
			want:    `{"index":"i","context":"c","item":{},"inputs":{},"ancestors":{},"count":2}`,
		},
	} {
		input, err := NewInput(test.input, test.parents, test.ancestors, nil, test.context, test.run)
		if err != nil {
			t.Fatal(err)
		}
		test.request.Task, test.request.Input = "t", input
		w := prepare(t, t.TempDir(), test.request)
		text, err := os.ReadFile(w.Env()["SWITCHYARD_INPUT"])
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v in %s", name, err, text)
		}
		if err := json.Unmarshal([]byte(test.want), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOutputAndContextUpdateAreReadBack(t *testing.T) {
	w := prepare(t, t.TempDir(), Request{Task: "t"})
	for name, read := range map[string]func(func([]byte) []byte) (*structpb.Struct, error){"output": w.Output, "context-update": w.ContextUpdate} {
		s, err := read(bytes.Clone)
		if err != nil || s == nil || len(s.GetFields()) != 0 {
			t.Errorf("%s that is not there: %v, error %v, want it empty", name, s, err)
		}
		if err := os.WriteFile(filepath.Join(w.Dir(), name), []byte("a=1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err = read(bytes.Clone)
		if err != nil || s.GetFields()["a"].GetStringValue() != "1" {
			t.Errorf("%s: %v, error %v", name, s, err)
		}
	}
}

func TestOversizedFilesAreRefused(t *testing.T) {
	w := prepare(t, t.TempDir(), Request{Task: "t"})
	for name, test := range map[string]struct {
		most int
		read func(func([]byte) []byte) (*structpb.Struct, error)
	}{
		"output": {MaxOutput, w.Output}, "context-update": {MaxContextUpdate, w.ContextUpdate},
	} {
		for more, ok := range map[int]bool{0: true, 1: false} {
			text := "a=" + strings.Repeat("x", test.most-2+more)
			if err := os.WriteFile(filepath.Join(w.Dir(), name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := test.read(bytes.Clone); (err == nil) != ok {
				t.Errorf("%s of %d bytes: error %v", name, len(text), err)
			}
		}
	}
}

// A directory is reused only if the attempt left it as it was.
func TestOnlyUnchangedDirectoriesAreReused(t *testing.T) {
	for name, test := range map[string]struct {
		leave func(w *Workspace, outside string) error
		again bool
	}{
		"nothing": {func(*Workspace, string) error { return nil }, true},
		"output": {func(w *Workspace, _ string) error {
			return os.WriteFile(w.Env()["SWITCHYARD_OUTPUT"], []byte("a=1"), 0o600)
		}, true},
		"a script": {func(w *Workspace, _ string) error {
			return os.WriteFile(filepath.Join(w.Dir(), interpreter.File), []byte("#!/bin/sh"), 0o600)
		}, true},
		"a file": {func(w *Workspace, _ string) error {
			return os.WriteFile(filepath.Join(w.Dir(), "mine"), nil, 0o600)
		}, false},
		"a temporary file": {func(w *Workspace, _ string) error {
			return os.WriteFile(filepath.Join(w.Env()["SWITCHYARD_LOCAL_TEMP_DIR"], "mine"), nil, 0o600)
		}, false},
		"an output that is a directory": {func(w *Workspace, _ string) error {
			return os.MkdirAll(filepath.Join(w.Env()["SWITCHYARD_OUTPUT"], "deep"), 0o700)
		}, false},
		"a second name of the input": {func(w *Workspace, outside string) error {
			return os.Link(w.Env()["SWITCHYARD_INPUT"], outside)
		}, false},
		"a link in place of the input": {func(w *Workspace, outside string) error {
			return errors.Join(os.Remove(w.Env()["SWITCHYARD_INPUT"]), os.Symlink(outside, w.Env()["SWITCHYARD_INPUT"]))
		}, false},
		"another file in place of the input": {func(w *Workspace, outside string) error {
			return errors.Join(os.WriteFile(outside, []byte("precious"), 0o600), os.Rename(outside, w.Env()["SWITCHYARD_INPUT"]))
		}, false},
		"a directory in tmp": {func(w *Workspace, _ string) error {
			return os.MkdirAll(filepath.Join(w.Dir(), "tmp", "mine"), 0o700)
		}, false},
		"other permissions": {func(w *Workspace, _ string) error { return os.Chmod(w.Dir(), 0o777) }, false},
		"no input":          {func(w *Workspace, _ string) error { return os.Remove(w.Env()["SWITCHYARD_INPUT"]) }, false},
	} {
		t.Run(name, func(t *testing.T) { testReuse(t, NewRoot(t.TempDir(), ""), test.leave, test.again) })
		t.Run(name+", with temporary files elsewhere", func(t *testing.T) {
			temp := t.TempDir()
			testReuse(t, NewRoot(t.TempDir(), temp), test.leave, test.again)
			if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
				t.Errorf("%v is left, error %v", left, err)
			}
		})
	}
}

func testReuse(t *testing.T, root *Root, leave func(w *Workspace, outside string) error, again bool) {
	first, err := root.Prepare(Request{Task: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if err := leave(first, filepath.Join(t.TempDir(), "outside")); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(first.Dir()); (err == nil) != again {
		t.Errorf("after Close the directory gives %v; used again: %v", err, again)
	}
	second, err := root.Prepare(Request{Task: "second", Input: newInput(t, map[string]any{"n": 2})})
	if err != nil {
		t.Fatal(err)
	}
	if same := second.Dir() == first.Dir(); same != again {
		t.Errorf("the directory was used again: %v, want %v", same, again)
	}
	if text, err := os.ReadFile(second.Env()["SWITCHYARD_INPUT"]); err != nil || strings.TrimSpace(string(text)) != `{"n":2}` {
		t.Errorf("the next input is %q, error %v", text, err)
	}
	if output, err := second.Output(bytes.Clone); err != nil || len(output.GetFields()) != 0 {
		t.Errorf("the next output is %v, error %v", output, err)
	}
	if err := errors.Join(second.Close(), root.Close()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(root.dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, error %v", left, err)
	}
}

func TestTemporaryDirectoriesMayBeOutsideTheWorkspace(t *testing.T) {
	t.Chdir(t.TempDir())
	root := NewRoot("attempts", "fast")
	w, err := root.Prepare(Request{Task: "t"})
	if err != nil {
		t.Fatal(err)
	}
	temp := w.TempDir()
	if w.Env()["SWITCHYARD_LOCAL_TEMP_DIR"] != temp || !filepath.IsAbs(temp) || filepath.Base(filepath.Dir(temp)) != "fast" {
		t.Errorf("the temporary directory is %s", temp)
	}
	for _, dir := range []string{temp, filepath.Dir(temp)} {
		if info, err := os.Stat(dir); err != nil || info.Mode() != os.ModeDir|0o700 {
			t.Errorf("%s: %v, error %v", dir, info, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(w.Dir(), "tmp")); err == nil {
		t.Error("there is one in the workspace as well")
	}
	// A later process keeps its temporary directories elsewhere.
	if err := os.WriteFile(filepath.Join(temp, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	later, err := NewRoot("attempts", "faster").Open(filepath.Base(w.Dir()), temp)
	if err != nil || later.TempDir() != temp {
		t.Fatalf("the workspace is opened as %v, error %v", later, err)
	}
	if err := later.Close(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{w.Dir(), temp} {
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

func TestSweepClearsBothDirectories(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	root := NewRoot(dir, temp)
	var made []*Workspace
	for range 2 {
		w, err := root.Prepare(Request{Task: "t"})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, w)
	}
	if err := NewRoot(dir, temp).Sweep([]string{filepath.Base(made[0].Dir())}); err != nil {
		t.Error(err)
	}
	for i, w := range made {
		for _, path := range []string{w.Dir(), w.TempDir()} {
			if _, err := os.Lstat(path); (err == nil) != (i == 0) {
				t.Errorf("workspace %d: %s: %v", i, path, err)
			}
		}
	}
}

// Nothing of one instance of a batch is left for the next one, which reuses the directory if it is unchanged.
func TestNextClearsThePreviousInstance(t *testing.T) {
	root := NewRoot(t.TempDir(), "")
	w, err := root.Prepare(Request{Task: "t", Index: 0, Count: 3, Checkpoint: []byte("so far")})
	if err != nil {
		t.Fatal(err)
	}
	first := w.Dir()
	for _, name := range []string{"output", "context-update", "checkpoint"} {
		if err := os.WriteFile(filepath.Join(first, name), []byte("a=1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Next(Request{Task: "t", Index: 1, Count: 3}); err != nil || w.Dir() != first {
		t.Fatalf("the directory is another one, error %v", err)
	}
	entries, err := os.ReadDir(first)
	if err != nil || len(entries) != 2 {
		t.Errorf("the second instance finds %v, error %v", entries, err)
	}
	if text, err := os.ReadFile(w.Env()["SWITCHYARD_INPUT"]); err != nil || string(text) != "{\"index\":1,\"count\":3}\n" || w.Env()["SWITCHYARD_INDEX"] != "1" {
		t.Errorf("its input is %s, error %v", text, err)
	}
	if err := os.WriteFile(filepath.Join(first, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Next(Request{Task: "t", Index: 2, Count: 3}); err != nil || w.Dir() == first {
		t.Errorf("the third instance gets the same directory, error %v", err)
	}
	if _, err := os.Lstat(first); err == nil {
		t.Error("what the second has left is still there")
	}
	if err := errors.Join(w.Close(), root.Close()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(root.dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, error %v", left, err)
	}
}

func TestCheckpointReadsEachVersionOnce(t *testing.T) {
	w := prepare(t, t.TempDir(), Request{Task: "t", Checkpoint: []byte("before")})
	file := w.Env()["SWITCHYARD_CHECKPOINT"]
	var state CheckpointState
	read := func(want string, changed bool) {
		t.Helper()
		data, now, err := w.Checkpoint(state)
		if err != nil || string(data) != want || (data != nil) != changed {
			t.Errorf("read %q, error %v; want %q", data, err, want)
		}
		state = now
	}
	replace := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(file+".new", []byte(text), 0o600), os.Rename(file+".new", file)); err != nil {
			t.Fatal(err)
		}
	}
	read("before", true)
	read("", false)
	replace("after1")
	read("after1", true)
	if err := os.WriteFile(file, []byte("longer"+"after"), 0o600); err != nil {
		t.Fatal(err)
	}
	read("longerafter", true)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	read("", false)
	replace("")
	read("", true)
	replace(strings.Repeat("x", MaxCheckpoint+1))
	for i, want := range []string{"SWITCHYARD_CHECKPOINT: is larger than 8192 KiB", ""} {
		data, now, err := w.Checkpoint(state)
		if data != nil || (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("look %d at one that is too large: %d bytes, error %v", i, len(data), err)
		}
		state = now
	}
	replace(strings.Repeat("x", MaxCheckpoint))
	read(strings.Repeat("x", MaxCheckpoint), true)
	if _, _, err := prepare(t, t.TempDir(), Request{Task: "t"}).Checkpoint(CheckpointState{}); err != nil {
		t.Errorf("without a checkpoint: %v", err)
	}
}

func TestItemInTheEnvironment(t *testing.T) {
	for want, item := range map[string]*structpb.Value{
		"a b": structpb.NewStringValue("a b"), "": structpb.NewStringValue(""), "3": structpb.NewNumberValue(3), "0.5": structpb.NewNumberValue(0.5),
		"true": structpb.NewBoolValue(true), "null": structpb.NewNullValue(), `["a&b",{"b":1}]`: list(t, "a&b", map[string]any{"b": 1}),
	} {
		w := prepare(t, t.TempDir(), Request{Task: "t", Count: 1, Item: item})
		if got, set := w.Env()["SWITCHYARD_ITEM"]; !set || got != want {
			t.Errorf("item %v is %q, want %q", item, got, want)
		}
	}
}

func TestItemThatIsTooLongForAVariableIsNotSet(t *testing.T) {
	const most = 128<<10 - len("SWITCHYARD_ITEM=") - 1
	for size, fits := range map[int]bool{most: true, most + 1: false} {
		w := prepare(t, t.TempDir(), Request{Task: "t", Count: 1, Item: structpb.NewStringValue(strings.Repeat("x", size))})
		if item, set := w.Env()["SWITCHYARD_ITEM"]; set != fits || set && len(item) != size || w.OmitsItem() == fits {
			t.Errorf("%d bytes: set %v, %d bytes, omitted %v", size, set, len(item), w.OmitsItem())
		}
	}
}

// A parse error quotes the text with its secrets replaced, and shows no part of a secret, wherever the quotation is
// cut.
func TestErrorsQuoteMaskedText(t *testing.T) {
	const secret = "s3cret-value-that-is-longer-than-what-an-error-quotes-of-a-line-of-text"
	mask := func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(secret), []byte("***")) }
	for text, want := range map[string]string{
		"a=1\nx " + secret + "\n":     `SWITCHYARD_OUTPUT, line 2: "x ***" is not key=value`,
		"a=1\nx y\n":                  `SWITCHYARD_OUTPUT, line 2: "x y" is not key=value`,
		"a=1\n#" + secret + "\nx y\n": `SWITCHYARD_OUTPUT, line 3: "x y" is not key=value`,
		"{" + secret + "}":            `SWITCHYARD_OUTPUT, line 1: invalid character '*' looking for beginning of object key string`,
	} {
		w := prepare(t, t.TempDir(), Request{Task: "t"})
		if err := os.WriteFile(filepath.Join(w.Dir(), "output"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Output(mask); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A link in the place of the directory of a task does not lead out of its workspace.
func TestFilesAreThoseOfTheWorkspace(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	w, err := NewRoot(t.TempDir(), "").Prepare(Request{Task: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.MakeFiles(); err != nil {
		t.Fatal(err)
	}
	root, err := w.OpenFiles()
	if err != nil {
		t.Fatal(err)
	}
	_ = root.Close()
	for _, link := range []string{elsewhere, "..", "../../.."} {
		if err := errors.Join(os.Remove(w.FilesDir()), os.Symlink(link, w.FilesDir())); err != nil {
			t.Fatal(err)
		}
		if root, err := w.OpenFiles(); err == nil {
			_ = root.Close()
			t.Errorf("a link to %s is followed", link)
		}
	}
}
