package artifacts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/artifacts"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

func openStore(t testing.TB, location string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// folder returns a new folder and its root.
func folder(t testing.TB) (string, *os.Root) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return dir, root
}

func key(name string) string { return storekey.Artifact("ci-0k/c", 0, "build", 1, name) }

func write(t testing.TB, dir, name string, content []byte, mode fs.FileMode) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
}

func noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

// describe returns what is in a folder: kinds, modes, times, sizes, contents and links.
func describe(t testing.TB, dir string) (all []string) {
	t.Helper()
	inodes := map[uint64]string{}
	err := filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, file)
		info, err := os.Lstat(file)
		if err != nil || name == "." {
			return err
		}
		text := fmt.Sprintf("%s %s", name, info.Mode())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			text += " -> " + target
		default:
			text += " " + info.ModTime().UTC().Format(time.RFC3339Nano)
		}
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			text += " " + storekey.Digest(content)
			stat := info.Sys().(*syscall.Stat_t)
			if first, again := inodes[stat.Ino]; again {
				text += " = " + first
			}
			inodes[stat.Ino] = name
		}
		all = append(all, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTreeArrivesAsItWas(t *testing.T) {
	t.Parallel()
	from, root := folder(t)
	write(t, from, "build/large", noise(9<<20+5, 1), 0o640)
	write(t, from, "build/exact", noise(4<<20, 2), 0o600)
	write(t, from, "build/zeros", make([]byte, 5<<20), 0o600)
	write(t, from, "build/bin/run.sh", []byte("echo hi\n"), 0o755)
	write(t, from, "build/bin/empty", nil, 0o444)
	for i := range 300 {
		write(t, from, fmt.Sprintf("build/many/%03d.txt", i), noise(i*200, uint64(i)), 0o644)
	}
	for i := range 8 { // some span two chunks
		write(t, from, fmt.Sprintf("build/odd/%d", i), noise(3<<19, uint64(i)), 0o644)
	}
	write(t, from, "beside", []byte("not in it"), 0o644)
	for _, err := range []error{
		os.MkdirAll(filepath.Join(from, "build/nothing/in"), 0o750), os.Symlink("bin/run.sh", filepath.Join(from, "build/link")),
		os.Symlink("../bin", filepath.Join(from, "build/many/up")), os.Link(filepath.Join(from, "build/exact"), filepath.Join(from, "build/same")),
		os.Chtimes(filepath.Join(from, "build/bin"), time.Time{}, time.Unix(1e9, 5000)), os.Chmod(filepath.Join(from, "build/bin"), 0o500),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, location := range map[string]string{"folder": t.TempDir(), "memory": "mem://"} {
		l := &artifacts.Library{Store: openStore(t, location)}
		var err error
		if l.Cache, err = artifacts.OpenCache(t.TempDir(), 1<<30); err != nil {
			t.Fatal(err)
		}
		a, err := l.Save(t.Context(), key("report"), "report", "build/**", root)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := l.Save(t.Context(), key("again"), "again", "build", root); err != nil || again.GetDigest() != a.GetDigest() || again.GetFiles() != 313 || again.GetSize() != a.GetSize() {
			t.Errorf("%s: %v, %v, then %v", name, err, a, again)
		}
		for _, from2 := range []string{"the store", "the cache"} {
			to, target := folder(t)
			write(t, to, "inputs/link", []byte("an older file"), 0o400)
			for i := range 8 {
				write(t, to, fmt.Sprintf("inputs/odd/%d", i), make([]byte, 2<<20), 0o400)
			}
			if err := l.Load(t.Context(), a, target, "inputs"); err != nil {
				t.Fatal(err)
			}
			if want, got := describe(t, filepath.Join(from, "build")), describe(t, filepath.Join(to, "inputs")); !slices.Equal(want, got) {
				t.Errorf("%s, from %s:\n%s\nwant\n%s", name, from2, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// chunks returns the number of stored chunks.
func chunks(t testing.TB, s *store.Store) (n int) {
	t.Helper()
	for key, err := range s.Keys(t.Context(), storekey.ChunksPrefix) {
		if err != nil {
			t.Fatal(err)
		}
		if _, is := storekey.ParseChunk(key); is {
			n++
		}
	}
	return n
}

// A change of a file costs the chunks near it, whatever its size is.
func TestWhatIsStoredIsNotStoredAgain(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	l := &artifacts.Library{Store: s}
	dir, root := folder(t)
	write(t, dir, "large", noise(20<<20, 1), 0o644)
	for i := range 500 {
		write(t, dir, fmt.Sprintf("src/%03d", i), noise(40_000, uint64(i)), 0o644)
	}
	if _, err := l.Save(t.Context(), key("a"), "a", ".", root); err != nil {
		t.Fatal(err)
	}
	before := chunks(t, s)
	write(t, dir, "src/200", []byte("another text"), 0o644)
	write(t, dir, "aaa", []byte("a file before all others"), 0o644)
	if _, err := l.Save(t.Context(), key("b"), "b", ".", root); err != nil {
		t.Fatal(err)
	}
	if more := chunks(t, s) - before; before < 9 || more > 3 {
		t.Errorf("%d chunks, then %d more", before, more)
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	dir, root := folder(t)
	for _, name := range []string{"a.txt", "b.log", "out/c.txt", "out/deep/d.txt", "out/deep/e.log", "odd[1]/f.txt"} {
		write(t, dir, name, []byte(name), 0o644)
	}
	l := &artifacts.Library{Store: openStore(t, "mem://")}
	for pattern, want := range map[string]string{
		"a.txt": "a.txt", "./a.txt": "a.txt", "*.txt": "a.txt", "**/*.txt": "a.txt odd[1]/f.txt out/c.txt out/deep/d.txt", "out": "c.txt deep/d.txt deep/e.log", "out/": "c.txt deep/d.txt deep/e.log",
		"out/**": "c.txt deep/d.txt deep/e.log", "out/*": "c.txt deep/d.txt deep/e.log", "out/**/*.log": "deep/e.log", "{a,b}.*": "a.txt b.log", "out/c.txt": "c.txt", `odd\[1\]/*`: "f.txt",
		".": "a.txt b.log odd[1]/f.txt out/c.txt out/deep/d.txt out/deep/e.log", "*.md": "none", "out/*.md": "none", "missing": "none", "missing/**": "none",
	} {
		a, err := l.Save(t.Context(), key("p"), "p", pattern, root)
		var got []string
		if err == nil {
			to, target := folder(t)
			if err := l.Load(t.Context(), a, target, "."); err != nil {
				t.Fatal(err)
			}
			_ = filepath.WalkDir(to, func(file string, entry fs.DirEntry, _ error) error {
				if name, _ := filepath.Rel(to, file); !entry.IsDir() {
					got = append(got, name)
				}
				return nil
			})
		} else if errors.Is(err, artifacts.ErrNone) {
			got = []string{"none"}
		} else {
			t.Error(err)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", pattern, got, want)
		}
	}
}

func TestWhatCannotBeAnArtifactIsRefusedByName(t *testing.T) {
	t.Parallel()
	l := &artifacts.Library{Store: openStore(t, "mem://")}
	for name, make := range map[string]func(file string) error{
		"leads out of the artifact, to /etc/passwd": func(file string) error { return os.Symlink("/etc/passwd", file) },
		"leads out of the artifact, to ../../x":     func(file string) error { return os.Symlink("../../x", file) },
		// Through other links, l/l/../.. would be above the artifact.
		"a link to l/l/../x, which may lead out of the artifact": func(file string) error {
			return errors.Join(os.Symlink(".", filepath.Join(filepath.Dir(file), "l")), os.Symlink("l/l/../x", file))
		},
		"neither a file, a folder nor a link": func(file string) error { return syscall.Mkfifo(file, 0o600) },
	} {
		dir, root := folder(t)
		write(t, dir, "out/fine", []byte("x"), 0o644)
		if err := make(filepath.Join(dir, "out/odd")); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Save(t.Context(), key("x"), "x", "out", root); !errors.Is(err, artifacts.ErrInvalid) || !strings.Contains(err.Error(), "odd is") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir, root := folder(t)
	write(t, dir, "names/a\n\xff", []byte("x"), 0o644)
	if _, err := l.Save(t.Context(), key("x"), "x", "names", root); !errors.Is(err, artifacts.ErrInvalid) || !strings.Contains(err.Error(), `the name "a\n\xff" is not UTF-8; rename it`) {
		t.Errorf("a name that is not UTF-8: %v", err)
	}
	for _, out := range []string{"..", "../x", "/etc/passwd"} {
		if _, err := l.Save(t.Context(), key("x"), "x", out, root); err == nil {
			t.Errorf("%s is stored", out)
		}
	}
}

// hostile returns the manifest of a tree, with the digest that it would have.
func hostile(t *testing.T, s *store.Store, entries ...*v1.ArtifactEntry) *v1.Artifact {
	t.Helper()
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := proto.Marshal(&v1.ArtifactTree{Entries: entries})
	if err != nil {
		t.Fatal(err)
	}
	m := &v1.ArtifactManifest{Artifact: &v1.Artifact{Name: "x"}, Tree: e.EncodeAll(tree, nil)}
	if m.Artifact.Digest, err = artifacts.Digest(m); err != nil {
		t.Fatal(err)
	}
	if err := s.PutMessage(t.Context(), key("x"), m); err != nil {
		t.Fatal(err)
	}
	return &v1.Artifact{Name: "x", Digest: m.GetArtifact().GetDigest(), Manifest: key("x")}
}

// TestReadOnlyFoldersAreReplaced matters for users that are not root.
func TestReadOnlyFoldersAreReplaced(t *testing.T) {
	t.Parallel()
	l := &artifacts.Library{Store: openStore(t, "mem://")}
	from, root := folder(t)
	write(t, from, "out/sub/file", []byte("x"), 0o444)
	if err := os.Chmod(filepath.Join(from, "out/sub"), 0o555); err != nil {
		t.Fatal(err)
	}
	a, err := l.Save(t.Context(), key("x"), "x", "out", root)
	if err != nil {
		t.Fatal(err)
	}
	to, root := folder(t)
	for range 2 {
		if err := l.Load(t.Context(), a, root, "in"); err != nil {
			t.Error(err)
		}
	}
	for _, sub := range []string{filepath.Join(from, "out/sub"), filepath.Join(to, "in/sub")} {
		if info, err := os.Stat(sub); err != nil || info.Mode().Perm() != 0o555 {
			t.Errorf("%s has the mode %v, %v", sub, info.Mode(), err)
		}
		_ = os.Chmod(sub, 0o755) // for the end of the test
	}
}

func TestHostileTreesStayInTheirFolder(t *testing.T) {
	t.Parallel()
	const folderKind, link, hard = v1.ArtifactEntry_KIND_FOLDER, v1.ArtifactEntry_KIND_SYMLINK, v1.ArtifactEntry_KIND_HARD_LINK
	s := openStore(t, "mem://")
	l := &artifacts.Library{Store: s}
	for name, entries := range map[string][]*v1.ArtifactEntry{
		"above":            {{Path: "../x", Mode: 0o644}},
		"absolute":         {{Path: "/x", Mode: 0o644}},
		"above within":     {{Path: "a", Kind: folderKind}, {Path: "a/../../x"}},
		"no name":          {{Path: ""}},
		"a null byte":      {{Path: "a\x00b"}},
		"the root":         {{Path: "."}},
		"through a link":   {{Path: "a", Kind: link, Target: "b"}, {Path: "a/x"}},
		"a link up":        {{Path: "a", Kind: link, Target: "../x"}},
		"a link by a link": {{Path: "l", Kind: link, Target: "."}, {Path: "a", Kind: link, Target: "l/../x"}},
		"a link away":      {{Path: "a", Kind: link, Target: "/etc"}},
		"a link to none":   {{Path: "a", Kind: link}},
		"a hard link up":   {{Path: "a", Kind: hard, Target: "../x"}},
		"a hard link away": {{Path: "a", Kind: hard, Target: "/etc/passwd"}},
		"a hard link back": {{Path: "a", Kind: hard, Target: "b"}, {Path: "b"}},
		"no folder":        {{Path: "a/x"}},
		"in a file":        {{Path: "a"}, {Path: "a/x"}},
		"twice":            {{Path: "a"}, {Path: "a"}},
		"a negative size":  {{Path: "a", Size: -1}},
		"no content":       {{Path: "a", Size: 5}},
		"an unknown kind":  {{Path: "a", Kind: 9}},
	} {
		to, target := folder(t)
		a := hostile(t, s, entries...)
		if err := l.Load(t.Context(), a, target, "in"); !errors.Is(err, artifacts.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if left := describe(t, to); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	// A folder of the task itself may lead elsewhere.
	to, target := folder(t)
	if err := os.Symlink("/tmp", filepath.Join(to, "in")); err != nil {
		t.Fatal(err)
	}
	if err := l.Load(t.Context(), hostile(t, s, &v1.ArtifactEntry{Path: "a", Kind: folderKind, Mode: 0o755}), target, "in"); err == nil {
		t.Error("the folder leads out of the root")
	}
}

func TestDamagedChunksAreNoticed(t *testing.T) {
	t.Parallel()
	s := openStore(t, "mem://")
	cacheDir := t.TempDir()
	open := func() *artifacts.Library {
		c, err := artifacts.OpenCache(cacheDir, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		return &artifacts.Library{Store: s, Cache: c}
	}
	dir, root := folder(t)
	write(t, dir, "large", noise(6<<20, 1), 0o644)
	l := open()
	a, err := l.Save(t.Context(), key("a"), "a", ".", root)
	if err != nil {
		t.Fatal(err)
	}
	load := func(l *artifacts.Library) error {
		to, target := folder(t)
		err := l.Load(t.Context(), a, target, ".")
		if got, _ := os.ReadFile(filepath.Join(to, "large")); err == nil && !bytes.Equal(got, noise(6<<20, 1)) {
			t.Error("another content")
		}
		return err
	}
	if err := load(l); err != nil {
		t.Error(err)
	}
	// What an earlier process has cached is checked, and fetched again if it is damaged.
	for _, entry := range must(os.ReadDir(cacheDir)) {
		if err := os.WriteFile(filepath.Join(cacheDir, entry.Name()), make([]byte, 4<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := load(open()); err != nil {
		t.Error(err)
	}
	for chunk := range s.Keys(t.Context(), storekey.ChunksPrefix) {
		if err := s.Put(t.Context(), chunk, []byte("\x00damaged")); err != nil {
			t.Fatal(err)
		}
		if err := artifacts.CheckChunk(chunk, []byte("\x00damaged")); err == nil {
			t.Error("a gateway would take a damaged chunk")
		}
	}
	if err := load(&artifacts.Library{Store: s}); !errors.Is(err, artifacts.ErrInvalid) {
		t.Errorf("damaged: %v", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestCacheStaysWithinItsLimit(t *testing.T) {
	t.Parallel()
	cacheDir := t.TempDir()
	cache, err := artifacts.OpenCache(cacheDir, 10<<20)
	if err != nil {
		t.Fatal(err)
	}
	l := &artifacts.Library{Store: openStore(t, t.TempDir()), Cache: cache}
	dir, root := folder(t)
	for i := range 5 {
		write(t, dir, fmt.Sprint(i), noise(6<<20, uint64(i)), 0o644)
		a, err := l.Save(t.Context(), key(fmt.Sprint("a", i)), "a", fmt.Sprint(i), root)
		if err != nil {
			t.Fatal(err)
		}
		_, target := folder(t)
		if err := l.Load(t.Context(), a, target, "."); err != nil {
			t.Fatal(err)
		}
	}
	total := int64(0)
	for _, entry := range must(os.ReadDir(cacheDir)) {
		total += must(entry.Info()).Size()
	}
	if total > 10<<20 || total < 4<<20 {
		t.Errorf("the cache has %d bytes", total)
	}
}

// Uploads and sweeps in any order: an artifact that was saved can be loaded, and in the end only what is referred to is left.
func TestSweepRacesWithUploads(t *testing.T) {
	t.Parallel()
	for round := range uint64(20) {
		draws := rand.New(rand.NewPCG(round, 1))
		s := openStore(t, "mem://")
		l := &artifacts.Library{Store: s}
		open := func(context.Context, string) (bool, error) { return true, nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		uploads := 2 + draws.IntN(3)
		kept := make([]*v1.Artifact, uploads)
		for i := range uploads {
			rounds, seed := 1+draws.IntN(4), draws.Uint64N(2)
			dir, root := folder(t)
			write(t, dir, "a", noise(200_000, seed), 0o644)
			all.Go(func() {
				for round := range rounds {
					// Each round stands for a run of its own, which is removed after its artifact was saved, except for the last one.
					run := fmt.Sprintf("ci-%d-%d", i, round)
					a, err := l.Save(ctx, storekey.Artifact(run+"/c", 0, "build", 1, "a"), "a", "a", root)
					if err != nil {
						t.Error(err)
						return
					}
					_, target := folder(t)
					if err := l.Load(ctx, a, target, "."); err != nil {
						t.Error(err)
					}
					if kept[i] = a; round < rounds-1 {
						if err := s.DeleteRun(ctx, run); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		stop := make(chan struct{})
		var sweeps sync.WaitGroup
		sweep := func() {
			if _, err := s.SweepChunks(ctx, func(ctx context.Context, yield func([]byte)) error {
				return artifacts.Used(ctx, s, time.Now(), open, yield)
			}); err != nil {
				t.Error(err)
			}
		}
		sweeps.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					sweep()
				}
			}
		})
		all.Wait()
		close(stop)
		sweeps.Wait()
		for _, a := range kept {
			_, target := folder(t)
			if err := l.Load(ctx, a, target, "."); err != nil {
				t.Error(err)
			}
			run, _, _ := storekey.SplitRun(a.GetManifest())
			if err := s.DeleteRun(ctx, run); err != nil {
				t.Error(err)
			}
		}
		if sweep(); chunks(t, s) > 0 {
			t.Errorf("%d chunks are left", chunks(t, s))
		}
	}
}

// A sweep that was interrupted holds uploads up until the next one, which completes it.
func TestInterruptedSweepIsCompleted(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	l := &artifacts.Library{Store: s}
	dir, root := folder(t)
	write(t, dir, "a", noise(200_000, 1), 0o644)
	if _, err := l.Save(t.Context(), key("a"), "a", "a", root); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteRun(t.Context(), "ci-0k"); err != nil {
		t.Fatal(err)
	}
	calls := 0
	if _, err := s.SweepChunks(t.Context(), func(context.Context, func([]byte)) error {
		if calls++; calls == 2 {
			return errors.New("killed")
		}
		return nil
	}); err == nil {
		t.Fatal("the sweep was not interrupted")
	}
	saved := make(chan error, 1)
	go func() {
		_, err := l.Save(t.Context(), key("b"), "b", "a", root)
		saved <- err
	}()
	select {
	case err := <-saved:
		t.Fatalf("saved during the sweep, %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	open := func(context.Context, string) (bool, error) { return true, nil }
	if _, err := s.SweepChunks(t.Context(), func(ctx context.Context, yield func([]byte)) error {
		return artifacts.Used(ctx, s, time.Now(), open, yield)
	}); err != nil {
		t.Error(err)
	}
	if err := <-saved; err != nil {
		t.Error(err)
	}
	if n := chunks(t, s); n != 1 {
		t.Errorf("%d chunks", n)
	}
}

// An upload that has failed leaves nothing that a sweep would keep.
func TestFailedUploadIsForgotten(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	l := &artifacts.Library{Store: s}
	dir, root := folder(t)
	write(t, dir, "fine", noise(80<<20, 1), 0o644)
	if err := syscall.Mkfifo(filepath.Join(dir, "odd"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Save(t.Context(), key("a"), "a", ".", root); !errors.Is(err, artifacts.ErrInvalid) {
		t.Fatal(err)
	}
	if chunks(t, s) == 0 {
		t.Error("nothing was uploaded")
	}
	sweepAs(t, s, true)
	if left := chunks(t, s); left > 0 {
		t.Errorf("%d chunks are left", left)
	}
}

// An upload beyond the quota of its run ends early, and leaves nothing that a sweep would keep.
func TestUploadBeyondItsQuotaIsForgotten(t *testing.T) {
	t.Parallel()
	for _, size := range []int{80 << 20, 10 << 10} { // with drafts, and in the manifest
		s := openStore(t, t.TempDir())
		s.LimitArtifacts(8 << 10)
		dir, root := folder(t)
		write(t, dir, "large", noise(size, 1), 0o644)
		_, err := (&artifacts.Library{Store: s}).Save(t.Context(), key("a"), "a", ".", root)
		if _, isFull := errors.AsType[*store.ArtifactQuotaError](err); !isFull {
			t.Fatal(err)
		}
		if n := chunks(t, s); n > 0 {
			t.Errorf("%d chunks were stored", n)
		}
	}
}

// sweepAs sweeps a store whose runs are all open, or all closed.
func sweepAs(t *testing.T, s *store.Store, open bool) {
	t.Helper()
	sweepAt(t, s, time.Now(), open)
}

func sweepAt(t *testing.T, s *store.Store, now time.Time, open bool) {
	t.Helper()
	if _, err := s.SweepChunks(t.Context(), func(ctx context.Context, yield func([]byte)) error {
		return artifacts.Used(ctx, s, now, func(context.Context, string) (bool, error) { return open, nil }, yield)
	}); err != nil {
		t.Error(err)
	}
}

// Drafts of an open run protect its chunks, and those of a closed run do not.
func TestDraftsOfClosedRunsProtectNothing(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	digest := make([]byte, 32)
	if err := s.PutMessage(t.Context(), storekey.Draft(key("a"), 0), &v1.ArtifactDraft{Chunks: [][]byte{digest}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), storekey.Chunk(digest), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if sweepAs(t, s, true); chunks(t, s) != 1 {
		t.Error("a chunk of an open run is removed")
	}
	if sweepAs(t, s, false); chunks(t, s) != 0 {
		t.Error("a chunk of a closed run is left")
	}
}

// TestExpiredArtifactsAreSweptAfterTheirRun checks that the contents of an artifact last until it has expired and its run has ended,
// and that no run takes an expired artifact over.
func TestExpiredArtifactsAreSweptAfterTheirRun(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	dir, root := folder(t)
	write(t, dir, "a", noise(200_000, 1), 0o644)
	a, err := (&artifacts.Library{Store: s, Keep: time.Hour}).Save(t.Context(), key("a"), "a", "a", root)
	if err != nil {
		t.Fatal(err)
	}
	end := a.GetExpiresAt().AsTime()
	if left := time.Until(end); left <= 0 || left > time.Hour {
		t.Errorf("it expires in %s", left)
	}
	for _, step := range []struct {
		at   time.Time
		open bool
		left int
	}{{end.Add(-1), false, 1}, {end, true, 1}, {end, false, 0}} {
		if sweepAt(t, s, step.at, step.open); chunks(t, s) != step.left {
			t.Errorf("%s after it has expired, open %t: %d chunks", step.at.Sub(end), step.open, chunks(t, s))
		}
	}
	l := &artifacts.Library{Store: s, Keep: 1}
	if a, err = l.Save(t.Context(), key("b"), "b", "a", root); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Adopt(t.Context(), a, storekey.Source("ci-1k")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("adopted: %v", err)
	}
}

// TestListsOfInstancesAreBounded checks that the artifacts of 50,000 instances fit into a list, and that a larger list is left out rather
// than cut.
func TestListsOfInstancesAreBounded(t *testing.T) {
	t.Parallel()
	all := &historyv1.InstanceArtifacts{}
	add := func(n int) {
		for len(all.List) < n {
			i := len(all.List)
			all.List = append(all.List, &historyv1.InstanceArtifact{Position: int32(i), Artifact: &v1.Artifact{
				Name: "part", Size: int64(i), Files: 1, Digest: fmt.Sprintf("sha256:%x", noise(32, uint64(i))),
				Manifest: storekey.Artifact("ci-0k/c", 0, fmt.Sprintf("each[%d]", i), int32(i%7), "part"),
			}})
		}
	}
	add(50_000)
	packed, err := artifacts.PackInstances(all)
	if err != nil || packed == nil {
		t.Fatalf("50,000 artifacts: %d bytes, %v", len(packed), err)
	}
	if got, err := artifacts.UnpackInstances(packed); err != nil || !proto.Equal(got, all) {
		t.Errorf("the list has changed: %v", err)
	}
	if _, err := artifacts.UnpackInstances(packed[:len(packed)/2]); !errors.Is(err, artifacts.ErrInvalid) {
		t.Errorf("half of a list: %v", err)
	}
	add(200_000)
	if packed, err := artifacts.PackInstances(all); packed != nil || err != nil {
		t.Errorf("200,000 artifacts: %d bytes, %v", len(packed), err)
	}
	if got, err := artifacts.UnpackInstances(nil); err != nil || len(got.GetList()) > 0 {
		t.Errorf("of no list: %v, %v", got, err)
	}
}
