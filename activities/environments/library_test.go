package environments

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
	v1 "switchyard/proto/switchyard/v1"
)

func open(t *testing.T) *Library {
	t.Helper()
	return New(storetest.Open(t, t.TempDir()))
}

// content returns n random bytes that depend only on n.
func content(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = r.Read(b)
	return b
}

// write stores a new archive for an environment that replaces the given version.
func (l *Library) write(t *testing.T, name string, replaces int32, data []byte) *v1.Environment {
	t.Helper()
	archive := NewArchive()
	if err := l.Reserve(t.Context(), archive, "a", name); err != nil {
		t.Fatal(err)
	}
	w := l.NewWriter(t.Context(), archive)
	if n, err := io.Copy(w, iotest(bytes.NewReader(data))); n != int64(len(data)) || err != nil {
		t.Fatalf("%d written, %v", n, err)
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if w.Stored() != int64(len(data)) || w.Size() != w.Stored() {
		t.Errorf("%d of %d are stored", w.Stored(), w.Size())
	}
	return &v1.Environment{
		Name: name, Kind: v1.EnvironmentImage, Version: replaces, Archive: w.Archive(), Size: w.Size(), Digest: w.Digest(), Parts: int32(w.Parts()), Node: "a",
	}
}

// iotest hides the methods of a reader that would let io.Copy write everything at once.
func iotest(r io.Reader) io.Reader { return struct{ io.Reader }{r} }

func (l *Library) keep(t *testing.T, name string, replaces int32, data []byte) *v1.Environment {
	t.Helper()
	kept, err := l.Keep(t.Context(), l.write(t, name, replaces, data))
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func (l *Library) read(ctx context.Context, e *v1.Environment) ([]byte, error) {
	r, err := l.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// keys returns the stored keys with a prefix.
func (l *Library) keys(t *testing.T, prefix string) (keys []string) {
	t.Helper()
	for key, err := range l.store.Keys(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	return keys
}

func TestKeptArchiveIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	l := open(t)
	for _, size := range []int{0, 1, PartBytes - 1, PartBytes, PartBytes + 1, 3*PartBytes + 5} {
		data := content(size)
		kept := l.keep(t, "desk-"+string(rune('a'+size%7)), 0, data)
		if kept.GetVersion() != 1 || kept.GetState() != v1.EnvironmentReady || kept.GetReadyAt() == nil || kept.GetParts() != int32((size+PartBytes-1)/PartBytes) {
			t.Errorf("kept: %v", kept)
		}
		if got, err := l.read(t.Context(), kept); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes are read as %d, %v", size, len(got), err)
		}
		if _, err := l.Delete(t.Context(), kept.GetName()); err != nil {
			t.Error(err)
		}
	}
	if left := l.keys(t, storekey.EnvironmentsPrefix); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestNewerVersionReplacesTheOlder(t *testing.T) {
	t.Parallel()
	l := open(t)
	first := l.keep(t, "desk", 0, content(PartBytes+7))
	other := l.keep(t, "desk.tmp", 0, content(9))
	reading, err := l.Open(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reading.Close() })
	if _, err := l.Keep(t.Context(), l.write(t, "desk", 0, content(3))); !errors.Is(err, ErrExists) {
		t.Errorf("kept in the place of another: %v", err)
	}
	second := l.keep(t, "desk", first.GetVersion(), content(5))
	if second.GetVersion() != 2 {
		t.Errorf("version %d", second.GetVersion())
	}
	if _, err := l.read(t.Context(), first); !errors.Is(err, executor.ErrNoEnvironment) || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("the older one is read: %v", err)
	}
	found, err := l.Find(t.Context(), "desk")
	if err != nil || found.GetArchive() != second.GetArchive() {
		t.Errorf("found %v, %v", found, err)
	}
	list, _, err := l.List(t.Context())
	if err != nil || len(list) != 2 || list[0].GetName() != "desk" || list[1].GetArchive() != other.GetArchive() {
		t.Errorf("listed %v, %v", list, err)
	}
	// A broken record hides no other one, and nothing is removed while the archive that it names is unknown.
	if err := l.store.Put(t.Context(), storekey.EnvironmentName("broken"), []byte("garbage")); err != nil {
		t.Fatal(err)
	}
	list, warnings, err := l.List(t.Context())
	if err != nil || len(list) != 2 || len(warnings) != 1 || !strings.Contains(warnings[0], `"broken"`) {
		t.Errorf("beside a broken one: %v, %q, %v", list, warnings, err)
	}
	if n, err := l.Clean(t.Context(), time.Now().Add(time.Hour)); n != 0 || err == nil || !strings.Contains(err.Error(), "which archives are in use") {
		t.Errorf("%d cleaned beside a broken one, %v", n, err)
	}
	if err := l.store.Delete(t.Context(), storekey.EnvironmentName("broken")); err != nil {
		t.Fatal(err)
	}
	// The archive that was not kept remains until Clean or DeleteArchive removes it.
	if n, err := l.Clean(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("%d cleaned, %v", n, err)
	}
	if n, err := l.Clean(t.Context(), time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("%d cleaned, %v", n, err)
	}
	for _, e := range []*v1.Environment{second, other} {
		if _, err := l.read(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
}

func TestKeepCompletesWhatAnEarlierOneHasBegun(t *testing.T) {
	t.Parallel()
	l := open(t)
	first := l.keep(t, "desk", 0, content(7))
	e := l.write(t, "desk", 1, content(8))
	second, err := l.Keep(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	// Simulate a first Keep that was interrupted before it removed the reservation and the older
	// version.
	if err := l.Reserve(t.Context(), archiveOf(e.GetArchive()), "a", "desk"); err != nil {
		t.Fatal(err)
	}
	if err := l.store.Put(t.Context(), storekey.EnvironmentPart(first.GetArchive(), 0), nil); err != nil {
		t.Fatal(err)
	}
	again, err := l.Keep(t.Context(), e)
	if err != nil || again.GetVersion() != 2 || again.GetArchive() != second.GetArchive() {
		t.Errorf("kept again: %v, %v", again, err)
	}
	if left := l.keys(t, storekey.EnvironmentArchivesPrefix); !slices.Equal(left, []string{storekey.EnvironmentPart(e.GetArchive(), 0)}) {
		t.Errorf("left: %v", left)
	}
}

func TestOnlyWholeReservedArchivesAreKept(t *testing.T) {
	t.Parallel()
	l := open(t)
	first := l.keep(t, "desk", 0, content(7))
	missing := l.write(t, "desk", 1, content(2*PartBytes))
	if err := l.store.Delete(t.Context(), storekey.EnvironmentPart(missing.GetArchive(), 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Keep(t.Context(), missing); !errors.Is(err, ErrIncomplete) {
		t.Errorf("without a part: %v", err)
	}
	given := l.write(t, "desk", 1, content(3))
	if err := l.store.Delete(t.Context(), storekey.EnvironmentOwner(archiveOf(given.GetArchive()))); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Keep(t.Context(), given); !errors.Is(err, ErrNotReserved) {
		t.Errorf("without a reservation: %v", err)
	}
	if found, err := l.Find(t.Context(), "desk"); err != nil || found.GetArchive() != first.GetArchive() {
		t.Errorf("found %v, %v", found, err)
	}
	if _, err := l.Keep(t.Context(), l.write(t, "other", 0, content(3))); err != nil {
		t.Error(err)
	}
	if _, err := l.Delete(t.Context(), "other"); err != nil {
		t.Error(err)
	}
	if _, err := l.Delete(t.Context(), "other"); !errors.Is(err, executor.ErrNoEnvironment) {
		t.Errorf("deleted twice: %v", err)
	}
}

func TestDeletedArchiveIsRemovedUnlessItIsKept(t *testing.T) {
	t.Parallel()
	l := open(t)
	kept := l.keep(t, "desk", 0, content(7))
	begun := l.write(t, "desk", 1, content(8))
	for _, archive := range []string{kept.GetArchive(), archiveOf(begun.GetArchive()), NewArchive(), ""} {
		if err := l.DeleteArchive(t.Context(), archive); err != nil {
			t.Error(err)
		}
	}
	if left := l.keys(t, storekey.EnvironmentArchivesPrefix); !slices.Equal(left, []string{storekey.EnvironmentPart(kept.GetArchive(), 0)}) {
		t.Errorf("left: %v", left)
	}
}

func TestDamagedArchiveIsAnError(t *testing.T) {
	t.Parallel()
	l := open(t)
	kept := l.keep(t, "desk", 0, content(PartBytes+7))
	for _, damage := range [][]byte{content(6), content(8), bytes.Repeat([]byte{1}, 7)} {
		if err := l.store.Put(t.Context(), storekey.EnvironmentPart(kept.GetArchive(), 1), damage); err != nil {
			t.Fatal(err)
		}
		if _, err := l.read(t.Context(), kept); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("read: %v", err)
		}
	}
}

func TestEndOfContextEndsReaderAndWriter(t *testing.T) {
	t.Parallel()
	l := open(t)
	kept := l.keep(t, "desk", 0, content(3*PartBytes))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := l.Open(ctx, kept)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	w := l.NewWriter(ctx, NewArchive())
	cancel()
	if _, err := io.ReadAll(r); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	_, _ = w.Write(content(PartBytes + 1))
	if err := w.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("written: %v", err)
	}
}

func TestArchiveIsReservedForOneNode(t *testing.T) {
	t.Parallel()
	l := open(t)
	archive := NewArchive()
	if _, err := l.Owner(t.Context(), archive); !errors.Is(err, executor.ErrNoEnvironment) {
		t.Errorf("owner: %v", err)
	}
	for range 2 {
		if err := l.Reserve(t.Context(), archive, "a", "desk"); err != nil {
			t.Error(err)
		}
	}
	if err := l.Reserve(t.Context(), archive, "b", "desk"); err == nil {
		t.Error("another node has reserved it too")
	}
	if owner, err := l.Owner(t.Context(), archive); err != nil || owner.GetNode() != "a" || owner.GetName() != "desk" {
		t.Errorf("owner %v, %v", owner, err)
	}
	if err := l.Reserve(t.Context(), "../names", "a", "desk"); err == nil {
		t.Error("reserved what is no archive")
	}
}
