package taskrunner

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
)

// Without a worker, an attempt is ended when its lease is over. An attempt that has ended by itself is left to the next
// worker.
func TestEndOverdue(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Block: true}, nil)
	keeper := &Keeper{Dir: h.State.Dir, Node: "n", Executor: h.survivor}
	look := func() int {
		t.Helper()
		left, err := keeper.EndOverdue(t.Context())
		if err != nil {
			t.Error(err)
		}
		return left
	}
	beat := func(ago time.Duration) {
		t.Helper()
		at := time.Now().Add(-ago)
		if err := os.Chtimes(h.keepsake().path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	beat(5 * time.Second)
	if left := look(); left != 1 || len(h.survivor.Removed()) != 0 {
		t.Errorf("%d are left, %v ended within the lease", left, h.survivor.Removed())
	}
	k := h.keepsake()
	k.state.AloneUntil = time.Now().Add(time.Hour)
	h.rewrite(k)
	beat(time.Hour)
	if left := look(); left != 1 || len(h.survivor.Removed()) != 0 {
		t.Errorf("%d are left, %v ended between two activities", left, h.survivor.Removed())
	}
	k.state.AloneUntil, k.state.TempDir = time.Time{}, filepath.Join(t.TempDir(), "temp")
	if err := os.MkdirAll(filepath.Join(k.state.TempDir, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.rewrite(k)
	h.survivor.FailSurvivors(errors.New("no engine"))
	if left, err := keeper.EndOverdue(t.Context()); left != 1 || err == nil || !slices.Equal(h.survivor.Killed(), []string{"3f2a"}) {
		t.Errorf("%d are left without an engine, %v; killed %v", left, err, h.survivor.Killed())
	}
	h.survivor.FailSurvivors(nil)
	if left := look(); left != 0 || !slices.Equal(h.survivor.Removed(), []string{reattachedID}) {
		t.Errorf("%d are left, %v ended", left, h.survivor.Removed())
	}
	h.settled() // and its folder is removed
	if _, err := os.Stat(k.state.TempDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its temporary directory is left: %v", err)
	}

	ended := killed(t, fake.Step{}, nil)
	keeper = &Keeper{Dir: ended.State.Dir, Node: "n", Executor: ended.survivor}
	at := time.Now().Add(-endedPatience / 2)
	if err := os.Chtimes(ended.keepsake().path, at, at); err != nil {
		t.Fatal(err)
	}
	if left, err := keeper.EndOverdue(t.Context()); left != 1 || err != nil || len(ended.survivor.Removed()) != 0 {
		t.Errorf("%d are left, %v ended, %v", left, ended.survivor.Removed(), err)
	}
	at = at.Add(-endedPatience)
	if err := os.Chtimes(ended.keepsake().path, at, at); err != nil {
		t.Fatal(err)
	}
	if left, err := keeper.EndOverdue(t.Context()); left != 0 || err != nil || len(ended.survivor.Removed()) != 1 {
		t.Errorf("%d are left, %v ended, %v", left, ended.survivor.Removed(), err)
	}
	if _, err := os.Stat(ended.State.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
}

// The wall clock of a node may be set while an attempt runs. The attempt is not ended for that.
func TestKeeperEndsNothingWhenTheClockIsSet(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Block: true}, nil)
	k := &Keeper{Dir: h.State.Dir, Node: "n", Executor: h.survivor}
	file := h.keepsake()
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file.path, past, past); err != nil {
		t.Fatal(err)
	}
	l, err := readOrphan(file.path)
	if err != nil {
		t.Fatal(err)
	}
	// The clock was set forward by an hour since the lease was first seen.
	k.ends = map[string]leaseEnd{file.path: {l.endAt(), executor.Now().Add(time.Second)}}
	if left, err := k.EndOverdue(t.Context()); left != 1 || err != nil || len(h.survivor.Removed()) != 0 {
		t.Errorf("%d are left, %v ended, %v", left, h.survivor.Removed(), err)
	}
	k.ends = map[string]leaseEnd{file.path: {l.endAt(), executor.Now().Add(-time.Second)}}
	if left, err := k.EndOverdue(t.Context()); left != 0 || err != nil || len(h.survivor.Removed()) != 1 {
		t.Errorf("%d are left, %v ended, %v", left, h.survivor.Removed(), err)
	}
}

// What no later worker could continue ends with its worker.
func TestKeeperEndsUnrecoverableAttempts(t *testing.T) {
	t.Parallel()
	dir, death := t.TempDir(), time.Now()
	left := func(id, fleet string, running bool, at time.Time) executor.Leftover {
		return executor.Leftover{ID: id, Identity: executor.Identity{Node: "n", Fleet: fleet}, Running: running, StartedAt: at}
	}
	before, after := death.Add(-time.Second), death.Add(time.Second)
	s := fake.NewSurvivor("container", nil,
		left("command", "f", true, before), left("recoverable", "f", true, before), left("ended", "f", false, before),
		left("of the next worker", "f", true, after), left("of another node", "g", true, before))
	if err := os.WriteFile(recoveryPath(dir, "recoverable"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k := &Keeper{Dir: dir, Node: "n", Fleet: "f", Executor: s}
	if err := k.EndUnrecoverable(t.Context(), death); err != nil || !slices.Equal(s.Removed(), []string{"command"}) {
		t.Errorf("removed %v, error %v", s.Removed(), err)
	}
	s.FailSurvivors(errors.New("no engine"))
	if err := k.EndUnrecoverable(t.Context(), death); err == nil {
		t.Error("an engine that is away has ended everything")
	}
}
