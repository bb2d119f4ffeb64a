package artifacts_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/artifacts"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// names returns the files below a folder.
func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	for _, line := range describe(t, dir) {
		if name, rest, _ := strings.Cut(line, " "); !strings.HasPrefix(rest, "d") {
			all = append(all, name)
		}
	}
	return all
}

// TestSourceLeavesOutWhatGitIgnores compares the files of a source with those that git would add.
func TestSourceLeavesOutWhatGitIgnores(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", top}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	git("init", "-q")
	for name, text := range map[string]string{
		".gitignore":         "# comment\n*.log\n!keep.log\n/root-only\nnode_modules/\n\n**/deep/*.tmp\nsub/exact\r\n\\#hash\n\\!bang\n",
		"sub/.gitignore":     "local.*\n!local.txt\nbuild/\n",
		".git/info/exclude":  "private\n",
		"sub/inner/file.log": "", "sub/keep.log": "", "sub/root-only": "", "root-only": "", "sub/node_modules/x": "", "sub/a/deep/x.tmp": "", "sub/a/deep/x.txt": "",
		"sub/exact": "", "sub/inner/exact": "", "sub/local.md": "", "sub/local.txt": "", "sub/build/out": "", "sub/inner/build/out": "", "sub/inner/buildx": "",
		"sub/private": "", "sub/#hash": "", "sub/!bang": "", "sub/bang": "", "sub/inner/.hidden": "", "sub/node_modules.txt": "",
	} {
		write(t, top, name, []byte(text), 0o644)
	}
	for _, dir := range []string{".", "sub"} {
		s := openStore(t, t.TempDir())
		l := &artifacts.Library{Store: s}
		id, _, err := l.SaveSource(t.Context(), filepath.Join(top, dir), artifacts.DefaultSourceLimits)
		if err != nil {
			t.Fatal(err)
		}
		got, root := folder(t)
		load(t, l, id, root)
		var want []string
		for _, name := range strings.Split(strings.TrimSpace(git("ls-files", "--others", "--exclude-standard", "-z", "--", dir)), "\x00") {
			if rest, err := filepath.Rel(dir, name); name != "" && err == nil {
				want = append(want, rest)
			}
		}
		slices.Sort(want)
		have := names(t, got)
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%s: the source has %v, git %v", dir, have, want)
		}
	}
}

// load unpacks the upload with an id, once it is what a gateway stores of it.
func load(t testing.TB, l *artifacts.Library, id string, root *os.Root) {
	t.Helper()
	key := storekey.SourceUpload(id)
	value, err := l.Store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	m, err := l.CheckUpload(t.Context(), value)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Store.PutMessage(t.Context(), key, m); err != nil {
		t.Fatal(err)
	}
	a := proto.CloneOf(m.GetArtifact())
	a.Manifest = key
	if err := l.Load(t.Context(), a, root, "."); err != nil {
		t.Fatal(err)
	}
}

func TestSwitchyardignoreGoesFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{".gitignore": "*.bin\n", ".switchyardignore": "!model.bin\ndata/\n", "model.bin": "", "other.bin": "", "data/x": "", "x": ""} {
		write(t, dir, name, []byte(text), 0o644)
	}
	l := &artifacts.Library{Store: openStore(t, t.TempDir())}
	id, saved, err := l.SaveSource(t.Context(), dir, artifacts.DefaultSourceLimits)
	if err != nil {
		t.Fatal(err)
	}
	got, root := folder(t)
	load(t, l, id, root)
	if have := names(t, got); !slices.Equal(have, []string{".gitignore", ".switchyardignore", "model.bin", "x"}) || saved.GetFiles() != 4 {
		t.Errorf("the source has %v, and counts %d files", have, saved.GetFiles())
	}
}

// TestSourceHasLimits checks that nothing of a source that is too large is stored.
func TestSourceHasLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a/one", noise(2<<20, 1), 0o644)
	write(t, dir, "a/two", noise(2<<20, 2), 0o644)
	l := &artifacts.Library{Store: openStore(t, t.TempDir())}
	for _, limits := range []artifacts.SourceLimits{{Bytes: 3 << 20, Files: 10}, {Bytes: 10 << 20, Files: 2}} {
		_, _, err := l.SaveSource(t.Context(), dir, limits)
		if !errors.Is(err, artifacts.ErrTooLarge) || !strings.Contains(err.Error(), "a/two") {
			t.Errorf("%+v: %v", limits, err)
		}
	}
	for _, prefix := range []string{storekey.ChunksPrefix, storekey.SourcesPrefix} {
		for key, err := range l.Store.Keys(t.Context(), prefix) {
			t.Errorf("%s is stored, %v", key, err)
		}
	}
	if _, _, err := l.SaveSource(t.Context(), dir, artifacts.SourceLimits{Bytes: 4 << 20, Files: 3}); err != nil {
		t.Error(err)
	}
}

// TestDigestsProveNothing checks that who knows the digests of chunks, and not what is in them, cannot make a source of them.
func TestDigestsProveNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "secret", noise(5<<20, 1), 0o644)
	l := &artifacts.Library{Store: openStore(t, t.TempDir())}
	id, _, err := l.SaveSource(t.Context(), dir, artifacts.DefaultSourceLimits)
	if err != nil {
		t.Fatal(err)
	}
	up := &v1.SourceUpload{}
	if err := l.Store.GetMessage(t.Context(), storekey.SourceUpload(id), up); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*v1.SourceUpload){
		"the digests as proofs":      func(up *v1.SourceUpload) { up.Proofs = up.GetManifest().GetChunks() },
		"no proofs":                  func(up *v1.SourceUpload) { up.Proofs = nil },
		"proofs of others":           func(up *v1.SourceUpload) { slices.Reverse(up.GetProofs()) },
		"a chunk that is not stored": func(up *v1.SourceUpload) { up.GetManifest().GetChunks()[0][3]++ },
	} {
		forged := proto.CloneOf(up)
		change(forged)
		value, err := proto.Marshal(forged)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.CheckUpload(t.Context(), value); !errors.Is(err, artifacts.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
