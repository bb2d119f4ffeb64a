package store

import (
	"errors"
	"strings"
	"testing"

	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// TestStoreOfANewerProgramIsRefused raises the data level of a store above that of this program.
func TestStoreOfANewerProgramIsRefused(t *testing.T) {
	t.Parallel()
	bucket := openAt(t, "mem://")
	for name, reopen := range map[string]func(dir string) *Store{
		"folder": func(dir string) *Store { return openAt(t, dir) },
		"bucket": func(string) *Store { return newStore(bucket.backend) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, known := t.TempDir(), historyv1.ReadableDataLevel()
			s := reopen(dir)
			for _, level := range []int{historyv1.WrittenDataLevel(), known} {
				if err := errors.Join(raiseLevel(t.Context(), s.backend, level, "v1.0.0"), s.CheckLevel(t.Context())); err != nil {
					t.Errorf("level %d: %v", level, err)
				}
			}
			owner := reopen(dir)
			owner.LimitLogs(1 << 30)
			owner.ClaimFor("cluster-1", "v1.0.0")
			if err := owner.Put(t.Context(), storekey.Status("run-00000001", 0), nil); err != nil {
				t.Fatal(err)
			}
			for _, by := range []string{"v2.0.0", "v2.1.0"} { // the first version that writes a level counts
				if err := raiseLevel(t.Context(), s.backend, known+2, by); err != nil {
					t.Fatal(err)
				}
			}
			again := reopen(dir)
			again.LimitLogs(1 << 30)
			again.ClaimFor("cluster-1", "v1.0.0")
			for what, do := range map[string]func() error{
				"check": func() error { return reopen(dir).CheckLevel(t.Context()) },
				"get":   func() error { _, err := again.Get(t.Context(), storekey.Status("run-00000001", 0)); return err },
				"put":   func() error { return again.Put(t.Context(), storekey.Status("run-00000002", 0), nil) },
			} {
				newer, ok := errors.AsType[*historyv1.NewerDataError](do())
				if !ok || newer.Level != known+2 || newer.By != "v2.0.0" || newer.What != "the store "+s.Location() {
					t.Errorf("%s: %+v", what, newer)
				}
			}
		})
	}
}

// TestLevelThatWasRemovedByHand checks that a store is refused although a lower level is missing, and that its version cannot
// disturb a terminal.
func TestLevelThatWasRemovedByHand(t *testing.T) {
	t.Parallel()
	s, level := openAt(t, t.TempDir()), historyv1.ReadableDataLevel()+levelGap
	for version, want := range map[string]string{"v3.0.0\n": "v3.0.0", "\x1b[31mv3": `"\x1b[31mv3"`, strings.Repeat("v", 100): `"` + strings.Repeat("v", 64) + `"`} {
		if err := s.backend.delete(t.Context(), LevelKey(level)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.backend.ensure(t.Context(), LevelKey(level), version); err != nil {
			t.Fatal(err)
		}
		newer, ok := errors.AsType[*historyv1.NewerDataError](s.CheckLevel(t.Context()))
		if !ok || newer.Level != level || newer.By != want {
			t.Errorf("%q: %+v", version, newer)
		}
	}
}

func TestLevelKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{LevelKey(2): true, "level-12": true, "level-": false, "level-02": false, "level-x": false, IdentityKey: false} {
		if got := IsLevelKey(key); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
}
