package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
)

const journalRun = "ci-0k"

func journalPath(dir string) string { return filepath.Join(dir, "runs", journalRun, "~journal") }

// appendTo appends raw bytes to the journal of a run.
func appendTo(t testing.TB, dir string, raw []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(journalPath(dir)), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(journalPath(dir), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func putFirst(t testing.TB, s *store.Store, key, value string) {
	t.Helper()
	if existed, err := s.PutIfAbsent(t.Context(), key, []byte(value)); err != nil || existed {
		t.Fatalf("put %s: existed %t, %v", key, existed, err)
	}
}

func wantValue(t testing.TB, s *store.Store, key, want string) {
	t.Helper()
	if got, err := s.Get(t.Context(), key); err != nil || string(got) != want {
		t.Errorf("%s is %.40q, %v; want %.40q", key, got, err, want)
	}
}

// A truncated entry, whose writer was killed, neither counts nor hides later entries.
func TestHalfAnEntryIsPassedOver(t *testing.T) {
	lost, kept := storekey.Result(journalRun, 0, "lost", 0), storekey.Result(journalRun, 0, "kept", 0)
	whole := func() []byte {
		dir := t.TempDir()
		putFirst(t, open(t, dir), lost, strings.Repeat("v", 100))
		raw, err := os.ReadFile(journalPath(dir))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}()
	for cut := 1; cut < len(whole); cut += 3 {
		dir := t.TempDir()
		s := open(t, dir)
		putFirst(t, s, storekey.Result(journalRun, 0, "before", 0), "b")
		appendTo(t, dir, whole[:cut])
		if _, err := s.Get(t.Context(), lost); err == nil {
			t.Fatalf("cut at %d: it is there", cut)
		}
		putFirst(t, s, kept, "k")
		putFirst(t, s, lost, "second")
		for _, reader := range []*store.Store{s, open(t, dir)} {
			wantValue(t, reader, kept, "k")
			wantValue(t, reader, lost, "second")
			if keys := keysOf(t, reader, ""); len(keys) != 3 {
				t.Errorf("cut at %d: keys %q", cut, keys)
			}
		}
	}
}

// Entries are appended to the run's current file, even if another process has removed the run meanwhile.
func TestJournalOfARunThatWasRemoved(t *testing.T) {
	dir := t.TempDir()
	one, other := open(t, dir), open(t, dir)
	key := storekey.Result(journalRun, 0, "t", 0)
	putFirst(t, one, key, "old")
	wantValue(t, other, key, "old")
	if err := other.DeleteRun(t.Context(), journalRun); err != nil {
		t.Fatal(err)
	}
	if value, err := one.Get(t.Context(), key); err == nil {
		t.Errorf("the value is still there: %q", value)
	}
	putFirst(t, one, key, "new")
	wantValue(t, other, key, "new")
}

func TestMoreRunsThanOpenJournals(t *testing.T) {
	s := open(t, t.TempDir())
	key := func(i int) string { return storekey.Result(fmt.Sprintf("ci-%dk", i), 0, "t", 0) }
	const runs = 300
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := w; i < runs; i += 4 {
				if existed, err := s.PutIfAbsent(t.Context(), key(i), fmt.Append(nil, i)); existed || err != nil {
					t.Errorf("%d: existed %t, %v", i, existed, err)
				}
				// Open a journal that the others may just have closed.
				if _, err := s.Get(t.Context(), key(i/2/4*4+w)); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	writers.Wait()
	for i := range runs {
		wantValue(t, s, key(i), fmt.Sprint(i))
	}
}

// Whatever a journal contains, it can be read and appended to.
func FuzzJournal(f *testing.F) {
	dir := f.TempDir()
	s := open(f, dir)
	putFirst(f, s, storekey.Result(journalRun, 0, "a", 0), "value")
	putFirst(f, s, storekey.Result(journalRun, 0, "b", 0), strings.Repeat("v", 5000))
	raw, err := os.ReadFile(journalPath(dir))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add(raw[:len(raw)-1])
	f.Add(append(slices.Clone(raw[3:]), raw...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		appendTo(t, dir, raw)
		s := open(t, dir)
		keysOf(t, s, "")
		key := storekey.Result(journalRun, 7, "fresh", 0)
		putFirst(t, s, key, "x")
		wantValue(t, s, key, "x")
	})
}
