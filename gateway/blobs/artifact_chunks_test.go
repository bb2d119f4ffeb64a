package blobs

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/artifacts"
	"switchyard/activities/grants"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

// TestNodesShareArtifactsOfTheirRuns checks that a node stores artifacts of its tasks through a gateway, and that only nodes of the
// same run can load them.
func TestNodesShareArtifactsOfTheirRuns(t *testing.T) {
	t.Parallel()
	f := start(t, t.TempDir())
	for _, grant := range []grants.Grant{
		{Node: "a", Run: "ci-0k", Chain: "c1", Task: "build"}, {Node: "b", Run: "ci-0k", Chain: "c1", Task: "test"}, {Node: "c", Run: "ci-1k", Chain: "c1", Task: "build"},
	} {
		if err := grants.New(f.Store).Put(t.Context(), grant); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	content := bytes.Repeat([]byte("0123456789abcdef"), 600_000)
	if err := os.WriteFile(filepath.Join(dir, "file"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	as := func(name string) *artifacts.Library { return &artifacts.Library{Store: f.openAs(t, node(name))} }
	key := storekey.Artifact("ci-0k/c1", 0, "build", 1, "app")
	a, err := as("a").Save(t.Context(), key, "app", "file", root)
	if err != nil {
		t.Fatal(err)
	}
	if err := as("b").Load(t.Context(), a, root, "b"); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "b/file")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	wantCode(t, "a node of another run loads it", as("c").Load(t.Context(), a, root, "c"), connect.CodePermissionDenied)
	_, err = as("c").Save(t.Context(), key, "app", "file", root)
	wantCode(t, "a node of another run replaces it", err, connect.CodePermissionDenied)
	// A digest that is not that of the content would give others another content.
	var chunk string
	for key, err := range f.Store.Keys(t.Context(), storekey.ChunksPrefix) {
		if chunk = key; err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, "a chunk with another content", f.openAs(t, node("a")).Put(t.Context(), chunk, []byte("\x00other")), connect.CodeInvalidArgument)
	for name, caller := range map[string]*auth.Principal{"a user": {Name: "ann", Role: v1.Role_ROLE_USER, Kind: auth.KindToken}} {
		s := f.openAs(t, caller)
		_, err := s.Get(t.Context(), chunk)
		wantCode(t, name+" reads a chunk", err, connect.CodePermissionDenied)
		wantCode(t, name+" stores an artifact", s.Put(t.Context(), key, nil), connect.CodePermissionDenied)
		wantCode(t, name+" stores a draft of a run", s.Put(t.Context(), storekey.Draft(key, 0), nil), connect.CodePermissionDenied)
		_, err = s.Get(t.Context(), storekey.SourceUpload(uuid.NewString()))
		wantCode(t, name+" reads a source", err, connect.CodeInvalidArgument)
	}
}

// TestUsersStoreSources checks that a gateway takes the files of a run from a user, and no source of contents that are not the user's.
func TestUsersStoreSources(t *testing.T) {
	t.Parallel()
	f := start(t, t.TempDir())
	s := f.openAs(t, &auth.Principal{Name: "ann", Role: v1.Role_ROLE_USER, Kind: auth.KindToken})
	dir := t.TempDir()
	content := bytes.Repeat([]byte("0123456789abcdef"), 600_000)
	if err := os.WriteFile(filepath.Join(dir, "file"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	id, a, err := (&artifacts.Library{Store: s}).SaveSource(t.Context(), dir, artifacts.DefaultSourceLimits)
	if err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	root, err := os.OpenRoot(into)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	own := &artifacts.Library{Store: f.Store}
	if a, err = own.Adopt(t.Context(), a, storekey.Source("ci-0k")); err != nil {
		t.Fatal(err)
	}
	if err := own.Load(t.Context(), a, root, "."); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(into, "file")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	stored := &v1.ArtifactManifest{}
	if err := f.Store.GetMessage(t.Context(), storekey.SourceUpload(id), stored); err != nil || len(stored.GetChunks()) == 0 {
		t.Errorf("the gateway has stored %d chunks, %v", len(stored.GetChunks()), err)
	}
	forged := s.PutMessage(t.Context(), storekey.SourceUpload(uuid.NewString()), &v1.SourceUpload{Manifest: stored, Proofs: stored.GetChunks()})
	wantCode(t, "a source of digests", forged, connect.CodeInvalidArgument)
	for _, key := range []string{"sources/x/files", "sources/" + id + "/other", "sources/" + id + "/drafts/01"} {
		wantCode(t, key, s.Put(t.Context(), key, nil), connect.CodeInvalidArgument)
	}
}

// TestNodesLearnOfAnArtifactQuota checks that a node gets the text about the quota of its run from its gateway.
func TestNodesLearnOfAnArtifactQuota(t *testing.T) {
	t.Parallel()
	f := start(t, "mem://")
	f.Store.LimitArtifacts(1 << 30)
	s := f.openAs(t, everyone)
	for name, m := range map[string]proto.Message{
		storekey.Artifact("ci-0k/c", 0, "build", 1, "app"):                &v1.ArtifactManifest{Artifact: &v1.Artifact{Size: 2 << 30}},
		storekey.Draft(storekey.Artifact("ci-0k/c", 0, "b", 1, "app"), 0): &v1.ArtifactDraft{Size: 2 << 30},
	} {
		err := s.PutMessage(t.Context(), name, m)
		if full, ok := errors.AsType[*store.ArtifactQuotaError](err); !ok || !strings.HasPrefix(full.Text, "the quota of the artifacts of a run is 1.00 GiB (--artifact-quota-gb of the gateway): those of this run have 0.00 GiB, and this one has 2.00 GiB or more; ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUploadsWaitForASweep checks that a node learns from its gateway that chunks are being removed.
func TestUploadsWaitForASweep(t *testing.T) {
	t.Parallel()
	f := start(t, t.TempDir())
	s := f.openAs(t, node("a"))
	digest := make([]byte, 32)
	if err := f.Store.Put(t.Context(), storekey.Chunk(digest), []byte("x")); err != nil {
		t.Fatal(err)
	}
	calls := 0
	if _, err := f.Store.SweepChunks(t.Context(), func(_ context.Context, yield func([]byte)) error {
		if calls++; calls == 2 {
			_, err := s.FindChunks(t.Context(), [][]byte{digest})
			if !errors.Is(err, store.ErrSweeping) {
				t.Errorf("during the sweep: %v", err)
			}
			yield(digest)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if stored, err := s.FindChunks(t.Context(), [][]byte{make([]byte, 31), digest}); err == nil {
		t.Errorf("a digest of 31 bytes: %v", stored)
	}
	if stored, err := s.FindChunks(t.Context(), [][]byte{bytes.Repeat([]byte{1}, 32), digest}); err != nil || stored[0] || !stored[1] {
		t.Errorf("after the sweep: %v, %v", stored, err)
	}
}

// TestFirstCommitOfARunStays stores what two nodes have fetched from git as the source of their run.
func TestFirstCommitOfARunStays(t *testing.T) {
	t.Parallel()
	f := start(t, "mem://")
	key := storekey.Source("ci-0k")
	for _, name := range []string{"a", "b"} {
		if err := grants.New(f.Store).Put(t.Context(), grants.Grant{Node: name, Run: "ci-0k", Chain: "c1", Task: name}); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	save := func(name, commit string) (*v1.Artifact, error) {
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(commit), 0o600); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		return (&artifacts.Library{Store: f.openAs(t, node(name))}).SaveCommit(t.Context(), storekey.Artifact("ci-0k/c1", 0, name, 1, "source"), key, commit, root)
	}
	first, err := save("a", "c0ffee")
	if err != nil || first.GetCommit() != "c0ffee" || first.GetManifest() != key {
		t.Fatalf("%v, %v", first, err)
	}
	if second, err := save("b", "decaf"); err != nil || !proto.Equal(second, first) {
		t.Errorf("the second node has %v, %v", second, err)
	}
	_, err = save("stranger", "0ddba11")
	wantCode(t, "a node without a task of the run", err, connect.CodePermissionDenied)
	wantCode(t, "a change", f.openAs(t, node("a")).Put(t.Context(), key, nil), connect.CodeAlreadyExists)
	_, err = f.openAs(t, node("a")).PutIfAbsent(t.Context(), key, []byte("\xff"))
	wantCode(t, "no manifest", err, connect.CodeInvalidArgument)
}
