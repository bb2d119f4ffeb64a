//go:build engines

package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/dev/testneeds"
)

// smallDisk mounts a file system of 40 MiB, whose floor is 2 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=40m"); err != nil {
		testneeds.Missing(t, "no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill fills a file system until only free bytes are left.
func fill(t *testing.T, dir string, free int64) {
	t.Helper()
	path := filepath.Join(dir, "other")
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, int64(stat.Bavail)*stat.Bsize-free), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLogsLeaveSpaceToTheRest(t *testing.T) {
	dir := smallDisk(t)
	s, err := store.Open(t.Context(), filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key, chunk, notice := storekey.LogChunk("r-1", 0, "t", 0, 1, 0), make([]byte, 64<<10), make([]byte, 100)
	put := func(key string, value []byte) error { return s.Put(context.Background(), key, value) }
	for _, test := range []struct {
		free          int64
		chunk, notice bool
	}{{4 << 20, true, true}, {1536 << 10, false, true}, {512 << 10, false, false}, {4 << 20, true, true}} {
		fill(t, dir, test.free)
		if err := put(key, notice); (err == nil) != test.notice || err != nil && !errors.Is(err, store.ErrLowSpace) {
			t.Errorf("with %d bytes left, a notice: %v", test.free, err)
		}
		if err := put(key, chunk); (err == nil) != test.chunk || err != nil && !errors.Is(err, store.ErrLowSpace) {
			t.Errorf("with %d bytes left, a chunk: %v", test.free, err)
		}
		if _, err := s.PutIfAbsent(context.Background(), key, chunk); (err == nil) != test.chunk || err != nil && !errors.Is(err, store.ErrLowSpace) {
			t.Errorf("with %d bytes left, a chunk of a gateway: %v", test.free, err)
		}
		if err := put(storekey.Result("r-1", 0, "t", 0), chunk); err != nil {
			t.Errorf("with %d bytes left, a result: %v", test.free, err)
		}
	}
	fill(t, dir, 0)
	if err := put(storekey.Result("r-1", 0, "t", 1), chunk); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "in the folder of the store; free space there, or lower --retention") {
		t.Errorf("on a full disk: %v", err)
	}
}
