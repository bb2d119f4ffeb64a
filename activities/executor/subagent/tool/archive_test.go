package tool

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

func mustPack(t testing.TB, dir string) []byte {
	t.Helper()
	data, err := Pack(dir, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustFingerprint(t testing.TB, dir string) string {
	t.Helper()
	f, err := Fingerprint(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// fill creates files of all kinds in a work directory.
func fill(t testing.TB, dir string) {
	t.Helper()
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "a", "b"), 0o777), os.Mkdir(filepath.Join(dir, "empty"), 0o777),
		os.WriteFile(filepath.Join(dir, "a", "b", "data"), bytes.Repeat([]byte("0123456789"), 1000), 0o666),
		os.WriteFile(filepath.Join(dir, "run"), []byte("#!/bin/sh\n"), 0o777),
		os.WriteFile(filepath.Join(dir, "not utf8 \xff"), []byte("x"), 0o666),
		os.WriteFile(filepath.Join(dir, strings.Repeat("long", 60)), []byte("x"), 0o666),
		os.Symlink("a/b/data", filepath.Join(dir, "inside")), os.Symlink("/etc/passwd", filepath.Join(dir, "outside")),
		os.Symlink("nowhere", filepath.Join(dir, "dangling")),
		os.Chtimes(filepath.Join(dir, "run"), time.Time{}, time.Unix(1e9, 123456789)),
	)
	for _, name := range []string{"a", "a/b", "empty", "run"} {
		err = errors.Join(err, os.Chmod(filepath.Join(dir, name), 0o777))
	}
	for _, name := range []string{"a/b/data", "not utf8 \xff", strings.Repeat("long", 60)} {
		err = errors.Join(err, os.Chmod(filepath.Join(dir, name), 0o666))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestArchiveRestoresWhatItHolds(t *testing.T) {
	from, to := newTree(t), newTree(t)
	fill(t, from.Path())
	data := mustPack(t, from.Path())
	if !bytes.Equal(data, mustPack(t, from.Path())) {
		t.Error("the same directory gives two archives")
	}
	write(t, filepath.Join(to.Path(), "old"), "of an earlier turn")
	if err := Unpack(to.Path(), data); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, mustPack(t, to.Path())) {
		t.Error("what was restored gives another archive")
	}
	if a, b := mustFingerprint(t, from.Path()), mustFingerprint(t, to.Path()); a != b {
		t.Errorf("fingerprints %s and %s", a, b)
	}
	if target, err := os.Readlink(filepath.Join(to.Path(), "outside")); err != nil || target != "/etc/passwd" {
		t.Errorf("%q, %v", target, err)
	}
	if info, err := os.Stat(filepath.Join(to.Path(), "run")); err != nil || info.Mode().Perm() != 0o777 || !info.ModTime().Equal(time.Unix(1e9, 123456789)) {
		t.Errorf("%v, %v", info, err)
	}
	if bytes.Contains(data, []byte("root:")) {
		t.Error("a link was followed")
	}
}

func TestFingerprintChangesWithTheDirectory(t *testing.T) {
	tree := newTree(t)
	fill(t, tree.Path())
	at := func(name string) string { return filepath.Join(tree.Path(), name) }
	before := mustFingerprint(t, tree.Path())
	if mustFingerprint(t, tree.Path()) != before {
		t.Error("it changes by itself")
	}
	for name, change := range map[string]func() error{
		"a new file":      func() error { return os.WriteFile(at("new"), nil, 0o666) },
		"a new directory": func() error { return os.Mkdir(at("a/new"), 0o777) },
		"a longer file":   func() error { return os.WriteFile(at("run"), []byte("longer"), 0o666) },
		"a time":          func() error { return os.Chtimes(at("a/b/data"), time.Time{}, time.Unix(5, 0)) },
		"permissions":     func() error { return os.Chmod(at("a/b/data"), 0o755) },
		"a link":          func() error { return errors.Join(os.Remove(at("inside")), os.Symlink("a", at("inside"))) },
		"a file gone":     func() error { return os.Remove(at("dangling")) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		after := mustFingerprint(t, tree.Path())
		if after == before {
			t.Errorf("%s is not seen", name)
		}
		before = after
	}
}

func TestTooLargeDirectoryIsNotPacked(t *testing.T) {
	tree := newTree(t)
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(rand.IntN(256))
	}
	write(t, filepath.Join(tree.Path(), "noise"), string(noise))
	var large *TooLargeError
	if _, err := Pack(tree.Path(), 1<<19); !errors.As(err, &large) {
		t.Errorf("error %v", err)
	}
	// A sparse file takes no space on the disk.
	if err := os.Truncate(filepath.Join(tree.Path(), "noise"), 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := Pack(tree.Path(), 64<<20); !errors.As(err, &large) || !strings.Contains(err.Error(), "1024 MiB") {
		t.Errorf("error %v", err)
	}
	deep := tree.Path()
	for range maxDepth + 5 {
		deep += "/d"
	}
	if err := os.MkdirAll(deep, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Pack(tree.Path(), 64<<20); !errors.As(err, &large) || !strings.Contains(err.Error(), "256 levels") {
		t.Errorf("error %v", err)
	}
	mustFingerprint(t, tree.Path())
}

func TestRemovedDirectoryIsPackedAsAnEmptyOne(t *testing.T) {
	tree := newTree(t)
	empty, fingerprint := mustPack(t, tree.Path()), mustFingerprint(t, tree.Path())
	for _, replace := range []func() error{
		func() error { return nil },
		func() error { return os.Symlink("/etc", tree.Path()) },
		func() error { return os.WriteFile(tree.Path(), nil, 0o600) },
	} {
		if err := os.RemoveAll(tree.Path()); err != nil {
			t.Fatal(err)
		}
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(mustPack(t, tree.Path()), empty) || mustFingerprint(t, tree.Path()) != fingerprint {
			t.Error("it is not empty")
		}
		if err := Unpack(tree.Path(), empty); err != nil {
			t.Error(err)
		}
		if info, err := os.Lstat(tree.Path()); err != nil || !info.IsDir() {
			t.Errorf("%v, %v", info, err)
		}
	}
}

func TestFilesMayChangeWhileTheyArePacked(t *testing.T) {
	tree := newTree(t)
	fill(t, tree.Path())
	end := make(chan struct{})
	var changes sync.WaitGroup
	for i := range 2 {
		changes.Go(func() {
			data := filepath.Join(tree.Path(), "a", "b", "data")
			for n := 0; ; n++ {
				select {
				case <-end:
					return
				default:
				}
				_ = os.WriteFile(data, bytes.Repeat([]byte("x"), n%5*10000), 0o666)
				_ = os.RemoveAll(filepath.Join(tree.Path(), "empty"))
				_ = os.Mkdir(filepath.Join(tree.Path(), "empty"), 0o777)
				if n%3 == i {
					_ = os.Remove(data)
				}
			}
		})
	}
	for range 50 {
		data, err := Pack(tree.Path(), 64<<20)
		if err == nil {
			err = Unpack(newTree(t).Path(), data)
		}
		if err != nil {
			t.Error(err)
			break
		}
	}
	close(end)
	changes.Wait()
}

// archiveOf returns an archive with the given headers. Regular files contain "evil".
func archiveOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var packed bytes.Buffer
	compressed, err := zstd.NewWriter(&packed, zstd.WithWindowSize(archiveWindow))
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(compressed)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = 4
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, "evil"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func TestHostileArchivesStayInTheDirectory(t *testing.T) {
	outside := t.TempDir()
	for name, headers := range map[string][]tar.Header{
		"a path up":         {{Typeflag: tar.TypeReg, Name: "../escaped"}},
		"a path up inside":  {{Typeflag: tar.TypeReg, Name: "a/../../escaped"}},
		"an absolute path":  {{Typeflag: tar.TypeReg, Name: outside + "/escaped"}},
		"through a link":    {{Typeflag: tar.TypeSymlink, Name: "l", Linkname: outside}, {Typeflag: tar.TypeReg, Name: "l/escaped"}},
		"through a link up": {{Typeflag: tar.TypeSymlink, Name: "l", Linkname: ".."}, {Typeflag: tar.TypeReg, Name: "l/escaped"}},
		"over a link":       {{Typeflag: tar.TypeSymlink, Name: "l", Linkname: outside + "/escaped"}, {Typeflag: tar.TypeReg, Name: "l"}},
		"a hard link":       {{Typeflag: tar.TypeLink, Name: "l", Linkname: "../input.json"}},
		"a device":          {{Typeflag: tar.TypeChar, Name: "l", Devmajor: 1, Devminor: 3}},
		"a pipe":            {{Typeflag: tar.TypeFifo, Name: "l"}},
		"no name":           {{Typeflag: tar.TypeReg, Name: "."}},
		"a file twice":      {{Typeflag: tar.TypeReg, Name: "a"}, {Typeflag: tar.TypeReg, Name: "a"}},
		"a directory link":  {{Typeflag: tar.TypeDir, Name: "d/"}, {Typeflag: tar.TypeSymlink, Name: "d", Linkname: outside}},
	} {
		tree := newTree(t)
		if err := Unpack(tree.Path(), archiveOf(t, headers...)); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
		checkNothingEscaped(t, tree, outside)
	}
	for name, data := range map[string][]byte{"nothing": nil, "no archive": []byte("no archive"), "cut": archiveOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "a"})[:20]} {
		if err := Unpack(newTree(t).Path(), data); err == nil && name != "nothing" {
			t.Errorf("%s: it is accepted", name)
		}
	}
}

func checkNothingEscaped(t testing.TB, tree *Tree, outside string) {
	t.Helper()
	if found, err := os.ReadDir(outside); err != nil || len(found) > 0 {
		t.Errorf("%v was made outside, %v", found, err)
	}
	found, err := os.ReadDir(filepath.Dir(tree.Path()))
	if err != nil || len(found) != 3 {
		t.Errorf("%v beside the work directory, %v", found, err)
	}
}

func FuzzUnpack(f *testing.F) {
	source := newTree(f)
	fill(f, source.Path())
	f.Add([]byte("../x"), []byte(".."), byte(tar.TypeSymlink), mustPack(f, source.Path()))
	f.Add([]byte("l/escaped"), []byte("../.."), byte(tar.TypeReg), []byte(nil))
	f.Add([]byte("a/b"), []byte("/tmp"), byte(tar.TypeDir), []byte("x"))
	f.Fuzz(func(t *testing.T, name, link []byte, kind byte, data []byte) {
		outside := t.TempDir()
		tree := newTree(t)
		_ = Unpack(tree.Path(), data)
		checkNothingEscaped(t, tree, outside)
		var packed bytes.Buffer
		compressed, err := zstd.NewWriter(&packed, zstd.WithWindowSize(archiveWindow), zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		w := tar.NewWriter(compressed)
		for _, h := range []tar.Header{
			{Typeflag: tar.TypeSymlink, Name: "l", Linkname: string(link)}, {Typeflag: tar.TypeSymlink, Name: "o", Linkname: outside},
			{Typeflag: kind, Name: string(name), Linkname: string(link), Mode: 0o7777}, {Typeflag: tar.TypeReg, Name: string(name) + "/x"},
		} {
			_ = w.WriteHeader(&h) // headers that cannot be written are left out
		}
		_, _ = w.Close(), compressed.Close()
		_ = Unpack(tree.Path(), packed.Bytes())
		checkNothingEscaped(t, tree, outside)
	})
}
