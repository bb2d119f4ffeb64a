package store

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

func TestInspectionShowsWhoseAStoreIs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	if _, err := Inspect(t.Context(), dir, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
	s := openAt(t, dir)
	s.ClaimFor("cluster-1", "test")
	seen, err := Inspect(t.Context(), dir, Options{})
	if err != nil || seen != (Inspection{Location: dir, IsStore: true}) {
		t.Errorf("a new store: %+v, %v", seen, err)
	}
	id, err := s.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen, err = Inspect(t.Context(), "file://"+dir, Options{})
	if err != nil || seen.Location != dir || seen.Identity != id || seen.Claim.Cluster != "cluster-1" {
		t.Errorf("a store of cluster-1: %+v, %v", seen, err)
	}
	if err := seen.Claim.CheckOwner("cluster-2", dir); !errors.Is(err, ErrForeign) {
		t.Errorf("for another cluster: %v", err)
	}
}

func TestInspectionOfABucketStoresNothing(t *testing.T) {
	t.Parallel()
	s := openAt(t, "mem://")
	b := s.backend.(*bucket)
	inspect := func() Inspection {
		seen := Inspection{}
		if err := seen.readBucket(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	for range 2 {
		if seen := inspect(); seen != (Inspection{IsEmpty: true}) {
			t.Errorf("an empty bucket: %+v", seen)
		}
	}
	id, err := s.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if seen := inspect(); seen != (Inspection{IsStore: true, Identity: id}) {
		t.Errorf("a store in a bucket: %+v", seen)
	}
}
