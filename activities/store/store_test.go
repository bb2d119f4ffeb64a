package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

func open(t testing.TB, location string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), location)
	return opened(t, s, err)
}

// openShared opens a folder as if it were on a network file system.
func openShared(t testing.TB, dir string) *store.Store {
	t.Helper()
	s, err := store.OpenShared(dir)
	return opened(t, s, err)
}

func opened(t testing.TB, s *store.Store, err error) *store.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// onEach runs a test on each kind of store.
func onEach(t *testing.T, test func(t *testing.T, s *store.Store)) {
	onFolders(t, test)
	onBuckets(t, test)
}

func onFolders(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Run("folder", func(t *testing.T) { test(t, open(t, t.TempDir())) })
	t.Run("shared folder", func(t *testing.T) { test(t, openShared(t, t.TempDir())) })
}

func onBuckets(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, open(t, "mem://")) })
	t.Run("S3", func(t *testing.T) {
		s, _ := openS3(t)
		test(t, s)
	})
	t.Run("GCS", func(t *testing.T) { test(t, openGCS(t)) })
}

func keysOf(t *testing.T, s *store.Store, prefix string) []string {
	t.Helper()
	var keys []string
	for key, err := range s.Keys(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	return keys
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, location := range []string{
		filepath.Join(dir, "new", "path"),
		"file://" + filepath.Join(dir, "with%20space"),
		"mem://",
	} {
		s := open(t, location)
		if err := s.Put(t.Context(), "a/b", []byte("x")); err != nil {
			t.Errorf("%s: %v", location, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "with space", "a", "b")); err != nil {
		t.Errorf("a file:// URL did not open the folder that it names: %v", err)
	}

	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for location, want := range map[string]string{
		"":                     "no folder or URL",
		"ftp://host/dir":       `unknown scheme "ftp"`,
		"file://relative/dir":  "file:///absolute/path",
		"file:///a?metadata=x": "file:///absolute/path",
		"mem://x":              "just mem://",
		"s3://":                "s3://bucket",
		"gs://bucket/part":     "?prefix=part/",
		"http://":              "http://host:7280",
		"http://host/?x=y":     "http://host:7280",
		file:                   "is not a directory",
	} {
		_, err := store.Open(t.Context(), location)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", location, err, want)
		}
	}
}

func TestMessageComesBack(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		want := &v1.TaskResult{ExitCode: 3, Stdout: "out", Output: &structpb.Struct{
			Fields: map[string]*structpb.Value{"k": structpb.NewStringValue("v")},
		}}
		key := storekey.Result("ci-0k", 0, "build", 0)
		for _, m := range []*v1.TaskResult{{Stdout: strings.Repeat("first ", 1000)}, want} {
			if err := s.PutMessage(t.Context(), key, m); err != nil {
				t.Fatal(err)
			}
		}
		got := new(v1.TaskResult)
		if err := s.GetMessage(t.Context(), key, got); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if err := s.Put(t.Context(), key, []byte{0xff}); err != nil {
			t.Fatal(err)
		}
		if err := s.GetMessage(t.Context(), key, got); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("a value that is no message: error %v", err)
		}
	})
}

func TestMissingValueIsErrNotFound(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		if err := s.Put(t.Context(), storekey.Status("ci-0k", 0), nil); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{
			storekey.Status("ci-0k", 1),
			storekey.Status("other", 0),
			storekey.RunPrefix("ci-0k") + "status",
		} {
			err := s.GetMessage(t.Context(), key, new(v1.Run))
			if !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: error %v", key, err)
			}
		}
		if value, err := s.Get(t.Context(), storekey.Status("ci-0k", 0)); err != nil || len(value) != 0 {
			t.Errorf("empty value: %q, %v", value, err)
		}
	})
}

// Two processes see the same values in one folder, even if one of them sees it over a network.
func TestStoreBehavesAsAMap(t *testing.T) {
	testneeds.Checks(t, 30)
	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir()
		behavesAsAMap(t, open(t, dir), open(t, dir), openShared(t, dir))
	})
	onBuckets(t, func(t *testing.T, s *store.Store) { behavesAsAMap(t, s) })
}

// behavesAsAMap compares a store, which may be open several times, with a map.
func behavesAsAMap(t *testing.T, stores ...*store.Store) {
	number := 0
	rapid.Check(t, func(t *rapid.T) {
		number++
		run := "ci-" + strconv.Itoa(number)
		keys := []string{storekey.Status(run, 0)}
		// The order of the directories of some of these names differs from that of their keys, and a bucket takes a part of the last
		// one for an escape sequence.
		for _, task := range []string{"a", "a-b", "a_b", "B", "a__0x2f__b"} {
			keys = append(keys, storekey.Result(run, 0, task, 0), storekey.LogChunk(run, 0, task, 0, 1, 0), storekey.LogChunk(run, 0, task, 0, 1, 1))
		}
		model := map[string]string{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			s, key := rapid.SampledFrom(stores).Draw(t, "store"), rapid.SampledFrom(keys).Draw(t, "key")
			value := strings.Repeat(rapid.StringMatching("[a-z]").Draw(t, "letter"), rapid.SampledFrom([]int{0, 1, 4096, 4097, 9000}).Draw(t, "size"))
			old, there := model[key]
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				existed, err := s.PutIfAbsent(t.Context(), key, []byte(value))
				if err != nil || existed != there {
					t.Fatalf("put %s if absent: existed %t, %v", key, existed, err)
				}
				if !there {
					model[key] = value
				}
			case 1:
				if err := s.Put(t.Context(), key, []byte(value)); err != nil {
					t.Fatal(err)
				}
				model[key] = value
			case 2:
				got, err := s.Get(t.Context(), key)
				if (err == nil) != there || string(got) != old {
					t.Fatalf("%s is %.20q, %v; want %.20q, %t", key, got, err, old, there)
				}
			case 3:
				prefix := key[:rapid.IntRange(len(storekey.RunPrefix(run)), len(key)).Draw(t, "cut")]
				var got, want []string
				for key, err := range s.Keys(t.Context(), prefix) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, key)
				}
				for key := range model {
					if strings.HasPrefix(key, prefix) {
						want = append(want, key)
					}
				}
				if slices.Sort(want); !slices.Equal(got, want) {
					t.Fatalf("keys of %q: %q, want %q", prefix, got, want)
				}
			}
		}
	})
}

func TestKeysGoesOverPages(t *testing.T) {
	onBuckets(t, func(t *testing.T, s *store.Store) {
		const n = 250 // pages of the fakes have 100
		for i := range int64(n) {
			if err := s.Put(t.Context(), storekey.LogChunk("ci-0k", 0, "build", 0, 0, i), nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(keysOf(t, s, storekey.LogsPrefix("ci-0k", "build"))); got != n {
			t.Errorf("%d keys, want %d", got, n)
		}
		for range s.Keys(t.Context(), "runs/") {
			break
		}
	})
}

func TestRunsAndTheirNewestValue(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		runs := func() (ids []string) {
			for id, err := range s.Runs(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			slices.Sort(ids)
			return ids
		}
		if got := runs(); len(got) != 0 {
			t.Errorf("an empty store has the runs %q", got)
		}
		if newest, err := s.Newest(t.Context(), "ci-0k"); err != nil || !newest.IsZero() {
			t.Errorf("the newest value of no run is of %s, %v", newest, err)
		}
		before := time.Now().Add(-time.Second) // files have coarse times
		for _, id := range []string{"ci-0k", "ci", "ci-0k.a"} {
			for n := range int64(3) {
				if err := s.Put(t.Context(), storekey.LogChunk(id, 0, "build", 0, 0, n), nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := runs(); !slices.Equal(got, []string{"ci", "ci-0k", "ci-0k.a"}) {
			t.Errorf("runs %q", got)
		}
		newest, err := s.Newest(t.Context(), "ci-0k")
		if err != nil || newest.Before(before) || newest.After(time.Now().Add(time.Second)) {
			t.Errorf("the newest value is of %s, %v", newest, err)
		}
	})
}

func TestNewestIsTheNewest(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i, key := range []string{storekey.Status("ci-0k", 0), storekey.LogChunk("ci-0k", 0, "build", 0, 0, 0), storekey.Result("ci-0k", 0, "build", 0)} {
		if err := s.Put(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
		when := at.Add(-time.Duration(i*i-2*i) * time.Hour) // the second is the newest
		if err := os.Chtimes(filepath.Join(dir, key), when, when); err != nil {
			t.Fatal(err)
		}
	}
	if newest, err := s.Newest(t.Context(), "ci-0k"); err != nil || !newest.Equal(at.Add(time.Hour)) {
		t.Errorf("the newest value is of %s, %v", newest, err)
	}
}

func TestKeysLeavesOutUnfinishedFiles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	key := storekey.LogChunk("ci-0k", 0, "build", 0, 0, 0)
	if err := s.Put(t.Context(), key, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, key+".18a3f.tmp"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := keysOf(t, s, ""); !slices.Equal(got, []string{key}) {
		t.Errorf("keys %q", got)
	}
}

func TestDeleteRunDeletesThatRun(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		kept := []string{storekey.Status("ci-0k1", 0), storekey.Status("ci-1k", 0)}
		gone := []string{storekey.Status("ci-0k", 0), storekey.LogChunk("ci-0k", 0, "build", 0, 0, 0)}
		for _, key := range slices.Concat(kept, gone) {
			if err := s.Put(t.Context(), key, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := s.DeleteRun(t.Context(), "ci-0k"); err != nil {
				t.Fatal(err)
			}
		}
		for _, run := range []string{"", ".", "..", "../..", "ci-1k/status", `..\x`} {
			if err := s.DeleteRun(t.Context(), run); err == nil {
				t.Errorf("DeleteRun(%q) is not refused", run)
			}
		}
		if got := keysOf(t, s, ""); !slices.Equal(got, kept) {
			t.Errorf("left: %q, want %q", got, kept)
		}
	})
}

func TestDeleteRunLeavesNoDirectory(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Put(t.Context(), storekey.LogChunk("ci-0k", 0, "build", 0, 0, 0), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteRun(t.Context(), "ci-0k"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "runs", "ci-0k")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of the run: %v", err)
	}
}

func TestAbortedPutLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Put(ctx, "a", []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "~store" {
		t.Errorf("left in the folder: %v, %v", entries, err)
	}
}

func TestReaderSeesWholeValuesWhileTheyAreReplaced(t *testing.T) {
	const writes = 60
	onEach(t, func(t *testing.T, s *store.Store) {
		value := func(i int) []byte { return []byte(strings.Repeat(strconv.Itoa(i%10), 1+i*97%5000)) }
		stored := map[string]bool{}
		for i := range writes {
			stored[string(value(i))] = true
		}
		if err := s.Put(t.Context(), "k", value(0)); err != nil {
			t.Fatal(err)
		}
		var writers sync.WaitGroup
		done := make(chan struct{})
		writers.Go(func() {
			defer close(done)
			for i := range writes {
				if err := s.Put(t.Context(), "k", value(i)); err != nil {
					t.Error(err)
				}
			}
		})
		for reading := true; reading; {
			select {
			case <-done:
				reading = false
			default:
			}
			got, err := s.Get(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			if !stored[string(got)] {
				t.Fatalf("read a value of %d bytes that was never stored", len(got))
			}
		}
		writers.Wait()
	})
}

// TestIdentityTellsStoresApart opens each store a second time: its identity is the same, and no other store has it.
func TestIdentityTellsStoresApart(t *testing.T) {
	seen := map[string]bool{}
	onEach(t, func(t *testing.T, s *store.Store) {
		id, err := s.Identity(t.Context())
		if err != nil || id == "" || seen[id] {
			t.Fatalf("identity %q, %v; seen before: %v", id, err, seen)
		}
		seen[id] = true
		if s.Location() == "mem://" {
			return
		}
		again := open(t, s.Location())
		if other, err := again.Identity(t.Context()); err != nil || other != id {
			t.Errorf("opened again it is %q, %v; want %q", other, err, id)
		}
	})
}
