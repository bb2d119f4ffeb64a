package blobs

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"connectrpc.com/connect"

	"switchyard/activities/environments"
	"switchyard/activities/grants"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestNodeReachesWhatItWasGiven(t *testing.T) {
	t.Parallel()
	f := start(t, "mem://")
	a, b := f.openAs(t, node("a")), f.openAs(t, node("b"))
	for _, grant := range []grants.Grant{
		{Node: "a", Run: "ci-0k", Chain: "c1", Task: "build"}, {Node: "a", Run: "ci-0k", Chain: "c1", Task: "each"}, {Node: "b", Run: "ci-1k", Chain: "c1", Task: "build"},
	} {
		if err := grants.New(f.Store).Put(t.Context(), grant); err != nil {
			t.Fatal(err)
		}
	}
	parent := storekey.Result("ci-0k/c1", 0, "parent", 0)
	if err := f.Store.Put(t.Context(), parent, []byte("output of a parent")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		storekey.Checkpoint("ci-0k/c1", 0, "build", 1), storekey.Result("ci-0k/c1", 1, "build", 2), storekey.Checkpoint("ci-0k/c1", 0, "each[12]", 1),
		storekey.Batch("ci-0k/c1", 0, "each[0-9]", 0, 1),
	} {
		wantCode(t, "node a stores "+key, a.Put(t.Context(), key, nil), 0)
		_, err := a.Get(t.Context(), key)
		wantCode(t, "node a reads "+key, err, 0)
		wantCode(t, "node b stores "+key, b.Put(t.Context(), key, nil), connect.CodePermissionDenied)
		_, err = b.Get(t.Context(), key)
		wantCode(t, "node b reads "+key, err, connect.CodePermissionDenied)
	}
	if value, err := a.Get(t.Context(), parent); err != nil || string(value) != "output of a parent" {
		t.Errorf("node a reads what a parent has left: %q, %v", value, err)
	}
	for _, key := range []string{parent, storekey.Checkpoint("ci-0k/c2", 0, "build", 1), storekey.Checkpoint("ci-1k/c1", 0, "build", 1), storekey.Checkpoint("ci-2k/c1", 0, "build", 1)} {
		wantCode(t, "node a stores "+key, a.Put(t.Context(), key, nil), connect.CodePermissionDenied)
	}
	_, err := a.Identity(t.Context())
	wantCode(t, "the identity", err, 0)
	wantCode(t, "node b probes the store", b.Probe(t.Context(), store.ProbeRun), 0)
	if err := b.Probe(t.Context(), "ci-0k"); err == nil {
		t.Error("node b writes the probe of a run")
	}
	var listed []string
	for key, err := range a.Keys(t.Context(), storekey.RunPrefix("ci-0k")) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, key)
	}
	if !slices.Contains(listed, parent) || slices.ContainsFunc(listed, storekey.IsGrant) {
		t.Errorf("listed %v", listed)
	}
	for _, prefix := range []string{"runs/ci-0k/grants/", "runs/ci-0k/grants/a/", "runs/ci-1k/", "runs/ci-2k/x"} {
		for _, err := range a.Keys(t.Context(), prefix) {
			wantCode(t, "node a lists "+prefix, err, connect.CodePermissionDenied)
		}
	}
}

// TestNodeWithRunningAttemptNeedsNoGrant covers attempts that started before the deployment required tokens.
func TestNodeWithRunningAttemptNeedsNoGrant(t *testing.T) {
	t.Parallel()
	f := start(t, "mem://")
	a, b := f.openAs(t, node("a")), f.openAs(t, node("b"))
	key := storekey.Checkpoint("running/c1", 0, "build", 1)
	if _, err := a.Get(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("node a reads: %v", err)
	}
	wantCode(t, "node a stores", a.Put(t.Context(), key, nil), 0)
	wantCode(t, "another node", b.Put(t.Context(), key, nil), connect.CodePermissionDenied)
	wantCode(t, "another task", a.Put(t.Context(), storekey.Checkpoint("running/c1", 0, "test", 1), nil), connect.CodePermissionDenied)
	wantCode(t, "another chain", a.Put(t.Context(), storekey.Checkpoint("running/c2", 0, "build", 1), nil), connect.CodePermissionDenied)
	// Access once granted stays: results may be delivered after the attempt has ended.
	f.server.hasEnded = true
	wantCode(t, "node a stores the result", a.Put(t.Context(), storekey.Result("running/c1", 0, "build", 0), nil), 0)
}

// captured stores an archive and returns the environment that it belongs to.
func captured(t *testing.T, s *store.Store, archive string, data []byte) *v1.Environment {
	t.Helper()
	w := environments.New(s).NewWriter(t.Context(), archive)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &v1.Environment{
		Name: "desk", Kind: v1.EnvironmentImage, Archive: w.Archive(), Size: w.Size(), Digest: w.Digest(), Parts: int32(w.Parts()), Node: "a",
	}
}

// TestNodeStoresTheArchiveThatIsReservedForIt stores the archive of an environment as its node and as another one. Each node reads
// it once it is kept, and people never do.
func TestNodeStoresTheArchiveThatIsReservedForIt(t *testing.T) {
	t.Parallel()
	f := start(t, "mem://")
	library, archive := environments.New(f.Store), environments.NewArchive()
	if err := library.Reserve(t.Context(), archive, "a", "desk"); err != nil {
		t.Fatal(err)
	}
	a, b := f.openAs(t, node("a")), f.openAs(t, node("b"))
	data := bytes.Repeat([]byte("switchyard"), environments.PartBytes/8)
	e := captured(t, a, archive, data)
	part, next, name := storekey.EnvironmentPart(e.GetArchive(), 0), storekey.EnvironmentPart(e.GetArchive(), 7), storekey.EnvironmentName("desk")
	wantCode(t, "the same part again", a.Put(t.Context(), part, data[:environments.PartBytes]), 0)
	wantCode(t, "another part in its place", a.Put(t.Context(), part, []byte("other")), connect.CodeAlreadyExists)
	wantCode(t, "a part that is too large", a.Put(t.Context(), next, make([]byte, environments.PartBytes+1)), connect.CodeInvalidArgument)
	wantCode(t, "another node stores a part", b.Put(t.Context(), next, nil), connect.CodePermissionDenied)
	unreserved := storekey.EnvironmentPart(environments.NewArchive()+"/0123456789abcdef", 0)
	wantCode(t, "a part of an archive that is not reserved", a.Put(t.Context(), unreserved, nil), connect.CodePermissionDenied)
	if _, err := a.Get(t.Context(), name); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an environment that is not ready: %v", err)
	}
	for _, key := range []string{name, storekey.EnvironmentOwner(archive), "environments/archives/" + archive + "/1/000000", "environments/x", "environments/../runs/x/y"} {
		wantCode(t, "node a stores "+key, a.Put(t.Context(), key, nil), connect.CodeInvalidArgument)
		if _, err := a.Get(t.Context(), key); key != name {
			wantCode(t, "node a reads "+key, err, connect.CodeInvalidArgument)
		}
	}
	for _, prefix := range []string{storekey.EnvironmentNamesPrefix, storekey.EnvironmentArchive(archive)} {
		for _, err := range a.Keys(t.Context(), prefix) {
			wantCode(t, "node a lists "+prefix, err, connect.CodeInvalidArgument)
		}
	}
	if err := a.Delete(t.Context(), part); err == nil {
		t.Error("node a deletes a part")
	}
	if _, err := library.Keep(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a part of an archive that is kept", a.Put(t.Context(), next, nil), connect.CodePermissionDenied)
	for name, s := range map[string]*store.Store{"a": a, "b": b} {
		of := environments.New(s)
		found, err := of.Find(t.Context(), "desk")
		if err != nil {
			t.Fatalf("node %s: %v", name, err)
		}
		r, err := of.Open(t.Context(), found)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
			t.Errorf("node %s reads %d bytes, %v", name, len(got), err)
		}
		_ = r.Close()
	}
}

func TestPeopleReachNoValues(t *testing.T) {
	t.Parallel()
	f := start(t, "mem://")
	for _, role := range []v1.Role{v1.Role_ROLE_VIEWER, v1.Role_ROLE_USER, v1.Role_ROLE_OPERATOR, v1.Role_ROLE_ADMIN} {
		s := f.openAs(t, &auth.Principal{Name: "ann", Role: role, Kind: auth.KindToken})
		for _, key := range []string{storekey.Checkpoint("ci-0k/c1", 0, "build", 1), storekey.EnvironmentPart(environments.NewArchive()+"/0123456789abcdef", 0)} {
			_, err := s.Get(t.Context(), key)
			wantCode(t, role.Word()+" reads "+key, err, connect.CodePermissionDenied)
			wantCode(t, role.Word()+" stores "+key, s.Put(t.Context(), key, nil), connect.CodePermissionDenied)
		}
		_, err := s.Identity(t.Context())
		wantCode(t, role.Word()+" reads the identity", err, connect.CodePermissionDenied)
		wantCode(t, role.Word()+" reads the data level", s.CheckLevel(t.Context()), connect.CodePermissionDenied)
	}
}

// TestNodeReadsTheDataLevel raises the data level of the store above what this program understands.
func TestNodeReadsTheDataLevel(t *testing.T) {
	t.Parallel()
	f := start(t, "mem://")
	a, key := f.openAs(t, node("a")), store.LevelKey(historyv1.ReadableDataLevel()+1)
	wantCode(t, "node a stores "+key, a.Put(t.Context(), key, nil), connect.CodeInvalidArgument)
	if err := a.CheckLevel(t.Context()); err != nil {
		t.Error(err)
	}
	if err := f.Store.Put(t.Context(), key, []byte("v9.0.0")); err != nil {
		t.Fatal(err)
	}
	if newer, ok := errors.AsType[*historyv1.NewerDataError](a.CheckLevel(t.Context())); !ok || newer.By != "v9.0.0" {
		t.Errorf("the store of a newer program: %v", newer)
	}
}
