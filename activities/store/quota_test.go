package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/dev/testneeds"
)

// openLimited opens a store in which the logs of a run may have 64 KiB.
func openLimited(t *testing.T, location string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	s.LimitLogs(64 << 10)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestLogsOfARunKeepToTheirQuota(t *testing.T) {
	t.Parallel()
	for name, location := range map[string]string{"folder": filepath.Join(t.TempDir(), "store"), "bucket": "mem://"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openLimited(t, location)
			chunk, notice, n := make([]byte, 16<<10), make([]byte, store.MaxNoticeBytes), int64(0)
			key := func(home string) string {
				n++
				return storekey.LogChunk(home, 0, "t", 0, 1, n)
			}
			put := func(key string, value []byte) error { return s.Put(t.Context(), key, value) }
			fails := func(what string, err error, fails bool) {
				t.Helper()
				if fails != errors.Is(err, store.ErrLogQuota) || !fails && err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			for range 3 {
				fails("a chunk", put(key("r-1"), chunk), false)
			}
			last := key("r-1")
			for range 3 { // like a node that has lost the answer
				_, err := s.PutIfAbsent(t.Context(), last, chunk)
				fails("the last chunk", err, false)
				_, err = s.PutIfAbsent(t.Context(), key("r-1"), chunk)
				fails("a chunk too many", err, true)
			}
			for range 3 { // 5% is left for notices
				fails("a notice", put(key("r-1"), notice), false)
			}
			fails("a notice too many", put(key("r-1"), notice), true)
			fails("a result", put(storekey.Result("r-1", 0, "t", 0), chunk), false)
			fails("a chunk of another run", put(key("r-2"), chunk), false)
			fails("a chunk of another chain", put(key("r-1/x"), chunk), false)
			if err := s.DeleteRun(t.Context(), "r-1"); err != nil {
				t.Fatal(err)
			}
			fails("a chunk after the run was deleted", put(key("r-1"), chunk), false)
		})
	}
}

// Values that other processes have stored for the run count, too.
func TestQuotaCountsWhatTheStoreHolds(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	first, second := openLimited(t, dir), openLimited(t, dir)
	put := func(s *store.Store, n int64) error {
		return s.Put(t.Context(), storekey.LogChunk("r-1", 0, "t", 0, 1, n), make([]byte, 10<<10))
	}
	for n := range int64(6) {
		if err := put([]*store.Store{first, second}[n%2], n); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*store.Store{first, second} {
		if err := put(s, 6); !errors.Is(err, store.ErrLogQuota) {
			t.Errorf("error %v", err)
		}
	}
}

// The quota holds even if there are more runs than usages in memory.
func TestLongQuotaHoldsForManyRuns(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	s := openLimited(t, filepath.Join(t.TempDir(), "store"))
	chunk := make([]byte, 33<<10)
	for n := range int64(2) {
		for run := range 1100 {
			err := s.Put(t.Context(), storekey.LogChunk(fmt.Sprintf("r-%d", run), 0, "t", 0, 1, n), chunk)
			if full := n == 1; full != errors.Is(err, store.ErrLogQuota) || !full && err != nil {
				t.Fatalf("chunk %d of run %d: %v", n, run, err)
			}
		}
	}
}
