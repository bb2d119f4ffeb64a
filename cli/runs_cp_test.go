package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/cli/archive"
	"switchyard/cli/exit"
)

// copyPlace creates a folder with "file", and a folder "dir" with "a" and "sub/b".
func copyPlace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "dir", "sub"), 0o700))
	for _, name := range []string{"file", "dir/a", "dir/sub/b"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("text of "+name), 0o600))
	}
	return dir
}

func TestCopyTargetsAreThoseOfCp(t *testing.T) {
	for _, test := range []struct{ source, target, made, text string }{
		{"file", "new", "new", "file"},
		{"file", "there", "there/file", "file"},
		{"file", "there/", "there/file", "file"},
		{"file", "old", "old", "file"},
		{"dir/sub/b", "there/b2", "there/b2", "dir/sub/b"},
		{"dir", "new", "new/sub/b", "dir/sub/b"},
		{"dir/", "there", "there/dir/a", "dir/a"},
		{"dir/.", "there", "there/sub/b", "dir/sub/b"},
		{"dir/.", "new", "new/a", "dir/a"},
	} {
		for _, up := range []bool{false, true} {
			f := fake(t)
			near, far := t.TempDir(), copyPlace(t)
			f.sessions.dir = far
			source, target, place := "night/build:"+test.source, near+"/"+test.target, near
			if up {
				near, far = far, near
				f.sessions.dir = far
				source, target, place = near+"/"+test.source, "night/build:"+test.target, far
			}
			must(t, os.Mkdir(filepath.Join(place, "there"), 0o700))
			must(t, os.WriteFile(filepath.Join(place, "old"), []byte("old"), 0o600))
			got := runWith(t, nil, "", "runs", "cp", "--gateway", f.url, source, target)
			if got.code != 0 || got.stdout+got.stderr != "" {
				t.Errorf("cp %s %s: %+v", source, target, got)
			}
			if text, err := os.ReadFile(filepath.Join(place, test.made)); err != nil || string(text) != "text of "+test.text {
				t.Errorf("cp %s %s: %q, %v", source, target, text, err)
			}
		}
	}
}

func TestCopiesAreRefused(t *testing.T) {
	f := fake(t)
	f.sessions.dir = copyPlace(t)
	near := copyPlace(t)
	for _, test := range []struct {
		source, target string
		code           int
		said           string
	}{
		{"night:file", "night:other", exit.CodeUsage, "one side must be a local path"},
		{near + "/file", near + "/other", exit.CodeUsage, "neither side names a task"},
		{"night/:file", near, exit.CodeUsage, "names no task"},
		{"night/build:", near, exit.CodeUsage, "has no path"},
		{near + "/none", "night:x", exit.CodeUsage, "no such file"},
		{near + "/file/", "night:x", exit.CodeUsage, "not a directory"},
		{near + "/dir", "night:file", exit.CodeNotDone, "file is a file in the task"},
		{near + "/file", "night:new/", exit.CodeNotDone, "there is no folder new/"},
		{"night:none", near + "/x", exit.CodeNotDone, "none"},
		{"night:dir", near + "/file", exit.CodeNotDone, "is not a folder"},
		{"night:file", near + "/none/x", exit.CodeNotDone, "no such file"},
	} {
		runWith(t, nil, "", "runs", "cp", "--gateway", f.url, test.source, test.target).ends(t, test.code, test.said)
	}
}

func TestCopyOfAnArchiveOnStandardStreams(t *testing.T) {
	f := fake(t)
	f.sessions.dir = copyPlace(t)
	got := runWith(t, nil, "", "runs", "cp", "--gateway", f.url, "night/build:dir", "-")
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	near := t.TempDir()
	must(t, archive.Unpack(bytes.NewReader([]byte(got.stdout)), archive.Target{Dir: near, Name: "x"}, nil))
	if text, err := os.ReadFile(filepath.Join(near, "x", "sub", "b")); err != nil || string(text) != "text of dir/sub/b" {
		t.Errorf("%q, %v", text, err)
	}
	must(t, os.Mkdir(filepath.Join(f.sessions.dir, "into"), 0o700))
	runWith(t, nil, got.stdout, "runs", "cp", "--gateway", f.url, "-", "night/build:into").ends(t, 0, "")
	if text, err := os.ReadFile(filepath.Join(f.sessions.dir, "into", "dir", "a")); err != nil || string(text) != "text of dir/a" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestCopyReportsSkippedFiles(t *testing.T) {
	f := fake(t)
	f.sessions.dir = t.TempDir()
	near := copyPlace(t)
	must(t, os.Symlink("/etc/passwd", filepath.Join(near, "dir", "out")))
	runWith(t, nil, "", "runs", "cp", "--gateway", f.url, near+"/dir", "night/build:new").ends(t, exit.CodeNotDone, "it is a link to /etc/passwd, which is outside what is copied")
	if _, err := os.Stat(filepath.Join(f.sessions.dir, "new", "sub", "b")); err != nil {
		t.Error(err)
	}
}

func TestCopySides(t *testing.T) {
	for text, want := range map[string]copySide{
		"last/each[3]:/a:b": {target: []string{"last", "each[3]"}, path: "/a:b"},
		"night:x":           {target: []string{"night"}, path: "x"},
		"./a:b":             {path: "./a:b"},
		"/a:b":              {path: "/a:b"},
		"a/b":               {path: "a/b"},
		"-":                 {stream: true},
	} {
		got, err := parseCopySide(text)
		if err != nil || strings.Join(got.target, " ") != strings.Join(want.target, " ") || got.path != want.path || got.stream != want.stream {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}
