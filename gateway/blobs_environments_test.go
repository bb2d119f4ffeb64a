package gateway

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"connectrpc.com/connect"

	"switchyard/activities/environments"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

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

func TestNodeStoresTheArchiveThatIsReservedForItAndEachNodeReadsIt(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	library, archive := environments.New(f.config.Store), environments.NewArchive()
	if err := library.Reserve(t.Context(), archive, "a", "desk"); err != nil {
		t.Fatal(err)
	}
	a, b := f.openAs(t, f.nodeToken(t, "a")), f.openAs(t, f.nodeToken(t, "b"))
	data := bytes.Repeat([]byte("switchyard"), environments.PartBytes/8)
	e := captured(t, a, archive, data)
	part := storekey.EnvironmentPart(e.GetArchive(), 0)
	if err := a.Put(t.Context(), part, data[:environments.PartBytes]); err != nil {
		t.Errorf("the same part again: %v", err)
	}
	if err := a.Put(t.Context(), part, []byte("other")); connect.CodeOf(err) != connect.CodeAlreadyExists {
		t.Errorf("another part in its place: %v", err)
	}
	if err := a.Put(t.Context(), storekey.EnvironmentPart(e.GetArchive(), 7), make([]byte, environments.PartBytes+1)); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a part that is too large: %v", err)
	}
	if err := b.Put(t.Context(), storekey.EnvironmentPart(e.GetArchive(), 7), nil); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("another node stores a part: %v", err)
	}
	if _, err := library.Keep(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if err := a.Put(t.Context(), storekey.EnvironmentPart(e.GetArchive(), 7), nil); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a part of an archive that is kept: %v", err)
	}
	for node, s := range map[string]*store.Store{"a": a, "b": b} {
		of := environments.New(s)
		found, err := of.Find(t.Context(), "desk")
		if err != nil {
			t.Fatalf("node %s: %v", node, err)
		}
		r, err := of.Open(t.Context(), found)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
			t.Errorf("node %s reads %d bytes, %v", node, len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestNodeDoesNothingElseToEnvironments(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	library, archive := environments.New(f.config.Store), environments.NewArchive()
	if err := library.Reserve(t.Context(), archive, "a", "desk"); err != nil {
		t.Fatal(err)
	}
	a := f.openAs(t, f.nodeToken(t, "a"))
	e := captured(t, a, archive, []byte("files"))
	part, name := storekey.EnvironmentPart(e.GetArchive(), 0), storekey.EnvironmentName("desk")
	for _, key := range []string{name, storekey.EnvironmentOwner(archive), "environments/archives/" + archive + "/1/000000", "environments/x", "environments/../runs/x/y"} {
		if err := a.Put(t.Context(), key, nil); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("node a stores %s: %v", key, err)
		}
		if _, err := a.Get(t.Context(), key); key != name && connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("node a reads %s: %v", key, err)
		}
	}
	if err := a.Put(t.Context(), storekey.EnvironmentPart(environments.NewArchive()+"/0123456789abcdef", 0), nil); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("node a stores a part of an archive that is not reserved: %v", err)
	}
	if _, err := a.Get(t.Context(), name); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("node a reads an environment that is not ready: %v", err)
	}
	for _, prefix := range []string{storekey.EnvironmentNamesPrefix, storekey.EnvironmentArchive(archive)} {
		for _, err := range a.Keys(t.Context(), prefix) {
			if connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("node a lists %s: %v", prefix, err)
			}
		}
	}
	if err := a.DeleteEnvironmentValue(t.Context(), part); err == nil {
		t.Error("node a deletes a part")
	}
	for _, role := range []string{v1.RoleViewer, v1.RoleUser, v1.RoleOperator, v1.RoleAdmin} {
		secret, _ := f.token(t, "ann", role)
		s := f.openAs(t, secret)
		_, read := s.Get(t.Context(), part)
		_, manifest := s.Get(t.Context(), name)
		for what, err := range map[string]error{"read": read, "manifest": manifest, "write": s.Put(t.Context(), storekey.EnvironmentPart(e.GetArchive(), 1), nil)} {
			if connect.CodeOf(err) != connect.CodePermissionDenied {
				t.Errorf("%s with the role %s: %v", what, role, err)
			}
		}
	}
}
