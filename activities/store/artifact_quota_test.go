package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

func TestArtifactsOfARunKeepToTheirQuota(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for name, location := range map[string]string{"folder": filepath.Join(t.TempDir(), "store"), "bucket": "mem://"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := func() *store.Store {
				s, err := store.Open(t.Context(), location)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
				s.LimitArtifacts(100 * gib)
				return s
			}
			s := open()
			key := func(run, task string) string { return storekey.Artifact(run+"/c", 0, task, 1, "app") }
			manifest := func(size int64) *v1.ArtifactManifest {
				return &v1.ArtifactManifest{Artifact: &v1.Artifact{Size: size}}
			}
			check := func(what string, err error, used string) {
				t.Helper()
				full, isFull := errors.AsType[*store.ArtifactQuotaError](err)
				if used == "" && err != nil || used != "" && (!isFull || !strings.Contains(full.Text, "is 100.00 GiB (--artifact-quota-gb of the gateway): those of this run have "+used)) {
					t.Errorf("%s: %v", what, err)
				}
			}
			put := func(s *store.Store, run, task string, size int64) error {
				return s.PutMessage(t.Context(), key(run, task), manifest(size))
			}
			draft := func(run, task string, size int64) error {
				return s.PutMessage(t.Context(), storekey.Draft(key(run, task), 0), &v1.ArtifactDraft{Size: size})
			}
			check("an artifact", put(s, "r-1", "a", 60*gib), "")
			check("the same", put(s, "r-1", "a", 60*gib), "") // like a node that has lost the answer
			check("one that is too large", put(s, "r-1", "b", 41*gib), "60.00 GiB")
			_, err := s.PutMessageIfAbsent(t.Context(), key("r-1", "b"), manifest(41*gib))
			check("one that must be absent", err, "60.00 GiB")
			check("a draft", draft("r-1", "b", 40*gib), "")
			check("a draft that is too large", draft("r-1", "b", 40*gib+1), "60.00 GiB")
			check("an empty draft", draft("r-1", "b", 0), "")
			check("another run", put(s, "r-2", "b", 100*gib), "")
			check("a log", s.Put(t.Context(), storekey.LogChunk("r-2/c", 0, "b", 0, 1, 1), []byte("x")), "")
			check("the rest", put(s, "r-1", "b", 40*gib), "")
			if name == "folder" { // each memory is a bucket of its own
				other := open()
				check("another process", put(other, "r-1", "c", 1), "100.00 GiB")
				check("a third run", put(s, "r-3", "a", 60*gib), "")
				check("another process in it", put(other, "r-3", "b", 30*gib), "")
				check("more than both leave", put(s, "r-3", "c", 11*gib), "90.00 GiB")
			}
			if err := s.DeleteRun(t.Context(), "r-1"); err != nil {
				t.Fatal(err)
			}
			check("after the run was removed", put(s, "r-1", "b", 100*gib), "")
		})
	}
}
