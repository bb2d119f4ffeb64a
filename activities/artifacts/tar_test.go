package artifacts_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"switchyard/activities/artifacts"
	v1 "switchyard/proto/switchyard/v1"
)

// saveTree stores a tree of all kinds of entries, with files up to the given size, and returns its folder.
func saveTree(t testing.TB, l *artifacts.Library, large int) (string, *v1.Artifact) {
	t.Helper()
	dir, root := folder(t)
	write(t, dir, "bin/app", noise(large, 7), 0o755)
	write(t, dir, "bin/empty", nil, 0o600)
	write(t, dir, "src/"+strings.Repeat("long", 40)+"/ä.txt", []byte("text"), 0o640)
	for i := range 20 {
		write(t, dir, "src/"+string(rune('a'+i)), noise(large/40, uint64(i)), 0o644)
	}
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "none"), 0o700), os.Symlink("../bin/app", filepath.Join(dir, "src/link")), os.Link(filepath.Join(dir, "src/c"), filepath.Join(dir, "src/zz")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	a, err := l.Save(t.Context(), key("tree"), "tree", ".", root)
	if err != nil {
		t.Fatal(err)
	}
	return dir, a
}

// TestTarIsTheTree checks that tar unpacks what was stored, and that the archive is the same each time and in every range.
func TestTarIsTheTree(t *testing.T) {
	t.Parallel()
	for _, large := range []int{400, 9 << 20} { // in the manifest, and in chunks
		l := &artifacts.Library{Store: openStore(t, "mem://")}
		from, a := saveTree(t, l, large)
		open := func() *artifacts.Reader { return must(l.OpenTar(t.Context(), a)) }
		whole := must(io.ReadAll(open()))
		if r := open(); r.Size() != int64(len(whole)) || !bytes.Equal(must(io.ReadAll(r)), whole) || r.Tag() != open().Tag() {
			t.Fatalf("%d bytes of %d", len(whole), r.Size())
		}
		if err := iotest.TestReader(open(), whole); large < 1000 && err != nil {
			t.Error(err)
		}
		to := t.TempDir()
		unpack := exec.Command("tar", "-x", "-p")
		unpack.Dir, unpack.Stdin = to, bytes.NewReader(whole)
		if text, err := unpack.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if want, got := describe(t, from), describe(t, filepath.Join(to, "tree")); !slices.Equal(want, got) {
			t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		r := open()
		rapid.Check(t, func(rt *rapid.T) {
			start := rapid.IntRange(0, len(whole)).Draw(rt, "start")
			length := rapid.IntRange(0, min(len(whole)-start, 100_000)).Draw(rt, "length")
			if _, err := r.Seek(int64(start-len(whole)), io.SeekEnd); err != nil {
				rt.Fatal(err)
			}
			got := make([]byte, length)
			if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, whole[start:start+length]) {
				rt.Fatalf("%d bytes at %d differ: %v", length, start, err)
			}
		})
	}
}

// TestTagFollowsTimes checks that the archive of equal files with other times has another tag, so that no download is continued
// with the other one.
func TestTagFollowsTimes(t *testing.T) {
	t.Parallel()
	l := &artifacts.Library{Store: openStore(t, "mem://")}
	_, first := saveTree(t, l, 400)
	tag := must(l.OpenTar(t.Context(), first)).Tag()
	_, second := saveTree(t, l, 400)
	if first.GetDigest() != second.GetDigest() || must(l.OpenTar(t.Context(), second)).Tag() == tag {
		t.Errorf("%v and %v", first, second)
	}
}

// TestFilesAreReadByTheirPaths checks that each file can be read, and nothing else.
func TestFilesAreReadByTheirPaths(t *testing.T) {
	t.Parallel()
	for _, large := range []int{400, 9 << 20} {
		l := &artifacts.Library{Store: openStore(t, "mem://")}
		dir, a := saveTree(t, l, large)
		for _, name := range []string{"bin/app", "bin/empty", "src/c", "src/zz", "src/t"} {
			r, err := l.OpenFile(t.Context(), a, name)
			if err != nil {
				t.Fatal(err)
			}
			if got := must(io.ReadAll(r)); !bytes.Equal(got, must(os.ReadFile(filepath.Join(dir, name)))) {
				t.Errorf("%s: %d bytes", name, len(got))
			}
		}
		for _, name := range []string{"", ".", "..", "bin", "/bin/app", "bin/../bin/app", "./bin/app", "../../etc/passwd", "src/link", "none", "bin\x00", a.GetManifest()} {
			if _, err := l.OpenFile(t.Context(), a, name); !errors.Is(err, artifacts.ErrNoFile) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

// TestTarOfNothingIsAFolder checks that an empty artifact is an archive, too.
func TestTarOfNothingIsAFolder(t *testing.T) {
	t.Parallel()
	l := &artifacts.Library{Store: openStore(t, "mem://")}
	r := tar.NewReader(must(l.OpenTar(t.Context(), must(l.SaveNone(t.Context(), key("none"), "none")))))
	if h, err := r.Next(); err != nil || h.Name != "none/" || h.Typeflag != tar.TypeDir {
		t.Errorf("%v, %v", h, err)
	}
	if h, err := r.Next(); err != io.EOF {
		t.Errorf("%v, %v", h, err)
	}
}
