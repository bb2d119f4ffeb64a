package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var modified = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// archiveOf returns an archive of entries: "name/" is a folder, "name -> target" a symbolic link, "name => target" a
// hard link.
func archiveOf(t *testing.T, entries ...string) *bytes.Buffer {
	t.Helper()
	text := &bytes.Buffer{}
	w := tar.NewWriter(text)
	for _, e := range entries {
		h := &tar.Header{Name: e, Mode: 0o640, ModTime: modified, Typeflag: tar.TypeReg}
		content := "text of " + e
		if name, target, ok := strings.Cut(e, " -> "); ok {
			h.Name, h.Linkname, h.Typeflag, content = name, target, tar.TypeSymlink, ""
		} else if name, target, ok := strings.Cut(e, " => "); ok {
			h.Name, h.Linkname, h.Typeflag, content = name, target, tar.TypeLink, ""
		} else if strings.HasSuffix(e, "/") {
			h.Typeflag, h.Mode, content = tar.TypeDir, 0o750, ""
		} else if strings.HasSuffix(e, "|") {
			h.Typeflag, content = tar.TypeFifo, ""
		}
		h.Size = int64(len(content))
		must(t, w.WriteHeader(h))
		_, err := io.WriteString(w, content)
		must(t, err)
	}
	must(t, w.Close())
	return text
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree returns the files below a folder in the notation of archiveOf.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			found[name+"/"] = ""
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			found[name] = "-> " + target
			return err
		}
		text, err := os.ReadFile(path)
		found[name] = string(text)
		return err
	}))
	return found
}

func TestUnpackMakesFilesFoldersAndLinks(t *testing.T) {
	dir := t.TempDir()
	var skipped []string
	err := Unpack(archiveOf(t, "data/", "data/a", "data/sub/", "data/sub/b", "data/in -> sub/b", "data/hard => data/a", "data/pipe|", "data/deep/er/c"),
		Target{Dir: dir, Name: "copy"}, func(name, _ string) { skipped = append(skipped, name) })
	must(t, err)
	want := map[string]string{
		"copy/": "", "copy/a": "text of data/a", "copy/sub/": "", "copy/sub/b": "text of data/sub/b", "copy/in": "-> sub/b",
		"copy/hard": "text of data/a", "copy/deep/": "", "copy/deep/er/": "", "copy/deep/er/c": "text of data/deep/er/c",
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"data/pipe|"}, skipped); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"copy/a", "copy", "copy/sub"} {
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if !info.ModTime().Equal(modified) {
			t.Errorf("%s is of %s", name, info.ModTime())
		}
	}
}

func TestUnpackIntoAFolderKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "sub", "old"), []byte("old"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "a"), []byte("old"), 0o600))
	must(t, Unpack(archiveOf(t, "data/", "data/a", "data/sub/", "data/sub/b"), Target{Dir: dir, Name: ""}, nil))
	if diff := cmp.Diff(map[string]string{"a": "text of data/a", "sub/": "", "sub/b": "text of data/sub/b", "sub/old": "old"}, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestUnpackOfOneFileTakesTheNameOfTheTarget(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "there"), []byte("old"), 0o600))
	must(t, Unpack(archiveOf(t, "log"), Target{Dir: dir, Name: "there"}, nil))
	if diff := cmp.Diff(map[string]string{"there": "text of log"}, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestUnpackRefusesPathsOutsideTheTarget(t *testing.T) {
	for _, entries := range [][]string{
		{"../evil"},
		{"/etc/evil"},
		{"data/", "data/../../evil"},
		{"data/", "evil"},
		{"data/", ".ssh/authorized_keys"},
		{"data/", "data/l => other/x"},
		{"data/", "data/l => ../evil"},
		{"data -> /etc"},
		{"file", "evil"},
		{"."},
		{"..", "../evil"},
	} {
		outer := t.TempDir()
		dir := filepath.Join(outer, "in")
		must(t, os.Mkdir(dir, 0o700))
		err := Unpack(archiveOf(t, entries...), Target{Dir: dir, Name: "copy"}, func(string, string) {})
		if err == nil {
			t.Errorf("%q is unpacked", entries)
		}
		for name := range tree(t, outer) {
			if strings.Contains(name, "evil") || strings.Contains(name, "auth") {
				t.Errorf("%q makes %s", entries, name)
			}
		}
	}
}

func TestUnpackLeavesOutLinksThatLeadOutside(t *testing.T) {
	for _, entries := range [][]string{
		{"data/", "data/l -> /etc/passwd"},
		{"data/", "data/l -> ../evil"},
		{"data/", "data/sub/", "data/sub/l -> ../../evil"},
		{"data/", "data/d/", "data/d/e/", "data/d/e/up -> ../..", "data/l -> d/e/up/.."},
	} {
		dir := t.TempDir()
		var skipped []string
		must(t, Unpack(archiveOf(t, entries...), Target{Dir: dir, Name: "copy"}, func(name, _ string) { skipped = append(skipped, name) }))
		if len(skipped) != 1 || !strings.HasSuffix(skipped[0], "/l") {
			t.Errorf("%q: skipped %q", entries, skipped)
		}
		for name := range tree(t, dir) {
			if filepath.Base(name) == "l" {
				t.Errorf("%q makes %s", entries, name)
			}
		}
	}
}

func TestUnpackDoesNotWriteThroughLinks(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "in")
	must(t, os.MkdirAll(filepath.Join(dir, "copy"), 0o700))
	must(t, os.Symlink(outer, filepath.Join(dir, "copy", "out")))
	if err := Unpack(archiveOf(t, "data/", "data/out/evil"), Target{Dir: dir, Name: "copy"}, nil); err == nil {
		t.Error("what is below a link to the outside is unpacked")
	}
	must(t, os.Symlink(outer, filepath.Join(dir, "link")))
	if err := Unpack(archiveOf(t, "data/", "data/evil"), Target{Dir: dir, Name: "link"}, nil); err == nil {
		t.Error("a link is unpacked into")
	}
	if _, err := os.Stat(filepath.Join(outer, "evil")); err == nil {
		t.Error("something lies outside")
	}
}

func TestBrokenArchiveLeavesNoHalfFile(t *testing.T) {
	text := archiveOf(t, "data/", "data/a", "data/b").Bytes()
	lost := errors.New("lost")
	for _, size := range []int{100, 512 + 100, 1024 + 5, 2048 + 4} {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "copy"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "copy", "b"), []byte("old"), 0o600))
		r := io.MultiReader(bytes.NewReader(text[:size]), &failing{lost})
		if err := Unpack(r, Target{Dir: dir, Name: "copy"}, nil); !errors.Is(err, lost) {
			t.Errorf("after %d bytes: %v", size, err)
		}
		for name, content := range tree(t, dir) {
			if strings.Contains(name, temporaryPrefix) || name == "copy/b" && content != "old" {
				t.Errorf("after %d bytes there is %s: %q", size, name, content)
			}
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func TestUnpackRestoresWhatPackWrote(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(source, "d", "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(source, "d", "sub", "a"), bytes.Repeat([]byte("x"), 100_000), 0o600))
	must(t, os.Symlink("sub/a", filepath.Join(source, "d", "l")))
	text := &bytes.Buffer{}
	must(t, Pack(text, filepath.Join(source, "d"), "other", nil))
	must(t, Unpack(text, Target{Dir: target, Name: "d"}, nil))
	if diff := cmp.Diff(tree(t, source), tree(t, target)); diff != "" {
		t.Error(diff)
	}
	text.Reset()
	must(t, Pack(text, filepath.Join(source, "d", "l"), "file", nil)) // a link at the top is followed
	must(t, Unpack(text, Target{Dir: target, Name: "f"}, nil))
	if got, err := os.ReadFile(filepath.Join(target, "f")); err != nil || len(got) != 100_000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestUnpackAcceptsAnArchiveWithoutATopFolder(t *testing.T) {
	dir := t.TempDir()
	must(t, Unpack(archiveOf(t, "./", "etc/", "etc/a", "b => etc/a"), Target{Dir: dir, Name: ""}, nil))
	if diff := cmp.Diff(map[string]string{"etc/": "", "etc/a": "text of etc/a", "b": "text of etc/a"}, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
	if err := Unpack(archiveOf(t, "./", "../evil"), Target{Dir: dir, Name: ""}, nil); err == nil {
		t.Error("a name outside is unpacked")
	}
	if err := Unpack(archiveOf(t, "./", "a"), Target{Dir: dir, Name: "name"}, nil); err == nil {
		t.Error("a folder without a name is renamed")
	}
}

func TestPackLeavesOutLinksThatLeadOutside(t *testing.T) {
	source := t.TempDir()
	must(t, os.Mkdir(filepath.Join(source, "sub"), 0o700))
	for name, target := range map[string]string{"abs": "/etc/passwd", "sub/up": "../../x", "sub/ok": "../abs"} {
		must(t, os.Symlink(target, filepath.Join(source, name)))
	}
	var skipped []string
	text := &bytes.Buffer{}
	must(t, Pack(text, source, "", func(name, _ string) { skipped = append(skipped, filepath.Base(name)) }))
	if diff := cmp.Diff([]string{"abs", "up"}, skipped); diff != "" {
		t.Error(diff)
	}
	in, names := tar.NewReader(text), []string(nil)
	for h, err := in.Next(); err == nil; h, err = in.Next() {
		names = append(names, h.Name)
	}
	if diff := cmp.Diff([]string{"sub/", "sub/ok"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestTargetOfADestination(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for _, test := range []struct {
		destination string
		contents    bool
		want        Target
		fails       bool
	}{
		{"folder", false, Target{Dir: "folder", Name: "src"}, false},
		{"folder/", false, Target{Dir: "folder/", Name: "src"}, false},
		{"folder", true, Target{Dir: "folder", Name: ""}, false},
		{"file", false, Target{Dir: "", Name: "file"}, false},
		{"new", false, Target{Dir: "", Name: "new"}, false},
		{"new/", true, Target{Dir: "", Name: "new"}, false},
		{"folder/new", false, Target{Dir: "folder", Name: "new"}, false},
		{"none/new", false, Target{}, true},
		{"file/new", false, Target{}, true},
		{"file/", false, Target{}, true},
	} {
		want := test.want
		want.Dir = filepath.Join(dir, want.Dir)
		got, err := TargetOf(dir+"/"+test.destination, "src", test.contents)
		got.Dir = filepath.Clean(got.Dir)
		if (err != nil) != test.fails || err == nil && got != want {
			t.Errorf("%s: %+v, %v; want %+v", test.destination, got, err, want)
		}
	}
}

func FuzzUnpackStaysInside(f *testing.F) {
	f.Fuzz(func(t *testing.T, a, b, c, link string) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "in")
		must(t, os.Mkdir(dir, 0o700))
		text := &bytes.Buffer{}
		w := tar.NewWriter(text)
		_ = w.WriteHeader(&tar.Header{Name: a, Typeflag: tar.TypeDir, Mode: 0o700})
		_ = w.WriteHeader(&tar.Header{Name: b, Typeflag: tar.TypeSymlink, Linkname: link})
		_ = w.WriteHeader(&tar.Header{Name: c, Typeflag: tar.TypeReg, Mode: 0o600})
		_ = w.Close()
		_ = Unpack(text, Target{Dir: dir, Name: "copy"}, func(string, string) {})
		entries, err := os.ReadDir(outer)
		must(t, err)
		inside, err := os.ReadDir(dir)
		must(t, err)
		if len(entries) != 1 || len(inside) > 1 || len(inside) == 1 && inside[0].Name() != "copy" {
			t.Errorf("%v and %v are there", entries, inside)
		}
	})
}

// TestNewTargetKeepsWhatExists checks that an archive for a new target replaces no file, and may add to folders.
func TestNewTargetKeepsWhatExists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := Target{Dir: dir, New: true}
	unexpected := func(name, why string) { t.Errorf("%s: %s", name, why) }
	must(t, Unpack(archiveOf(t, "top/", "top/sub/", "top/sub/a"), target, unexpected))
	must(t, Unpack(archiveOf(t, "top/", "top/sub/", "top/sub/b", "top/link -> sub/a"), target, unexpected))
	for _, entries := range [][]string{{"top/", "top/sub/a"}, {"top/", "top/sub"}, {"top/", "top/sub/a/"}, {"top/", "top/link/"}, {"top/", "top/sub/b -> a"}, {"top/", "top/c", "top/sub/b => top/c"}} {
		if err := Unpack(archiveOf(t, entries...), target, unexpected); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%v: %v", entries, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "sub/a")); err != nil || string(text) != "text of top/sub/a" {
		t.Errorf("%q, %v", text, err)
	}
}
