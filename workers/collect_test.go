package workers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
)

// collectorOf returns a collector with a store of its own in a folder.
func collectorOf(t *testing.T, y *workertest.Cluster) (workers.Collector, string) {
	t.Helper()
	dir := t.TempDir()
	return workers.NewCollector(y.Conn, storetest.Open(t, dir), y.Logger), dir
}

// keep stores some values of a run with the given age.
func keep(t *testing.T, c workers.Collector, dir, run string, age time.Duration) {
	t.Helper()
	for _, key := range []string{storekey.Status(run, 0), storekey.LogChunk(run, 0, "a", 0, 0, 0)} {
		if err := c.Store().Put(t.Context(), key, []byte("x")); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(dir, key), when, when); err != nil {
			t.Fatal(err)
		}
	}
}

// kept returns the runs that have values.
func kept(t *testing.T, c workers.Collector) (runs []string) {
	t.Helper()
	for run, err := range c.Store().Runs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	slices.Sort(runs)
	return runs
}

func TestCollectorRemovesOnlyWhatIsOver(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	open := c.Submit(c.Input(`{name: waits, tasks: {a: {type: shell, spec: {command: x}, constraints: {nodeLabels: [nowhere]}}}}`)).ID
	c.Start("a")
	closed := c.Do(`{name: over, tasks: {a: {type: shell, spec: {command: x}}}}`).GetId()

	k, dir := collectorOf(t, c.Cluster)
	const month = 30 * 24 * time.Hour
	keep(t, k, dir, open, 3*month)
	keep(t, k, dir, closed, 3*month) // its end counts
	keep(t, k, dir, "nobody-knows01", month+time.Hour)
	keep(t, k, dir, "nobody-knows02", month-time.Hour)
	for run, digest := range map[string][]byte{open: bytes.Repeat([]byte{1}, 32), closed: bytes.Repeat([]byte{2}, 32)} {
		if err := k.Store().PutMessage(t.Context(), storekey.Artifact(run+"/c", 0, "a", 1, "app"), &v1.ArtifactManifest{Chunks: [][]byte{digest}}); err != nil {
			t.Fatal(err)
		}
		if err := k.Store().Put(t.Context(), storekey.Chunk(digest), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	chunks := func() int {
		found, err := filepath.Glob(filepath.Join(dir, "chunks", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for _, step := range []struct {
		later time.Duration
		want  []string
	}{
		{0, []string{open, closed, "nobody-knows01", "nobody-knows02"}}, // a run is missed twice before it is removed
		{time.Minute, []string{open, closed, "nobody-knows01", "nobody-knows02"}},
		{time.Hour - time.Minute, []string{open, closed, "nobody-knows02"}},
		{month - time.Minute, []string{open, closed, "nobody-knows02"}},
		{month + time.Hour, []string{open}},
		{12 * month, []string{open}},
	} {
		k.SetClock(func() time.Time { return time.Now().Add(step.later) })
		if _, err := k.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		slices.Sort(step.want)
		if got := kept(t, k); !slices.Equal(got, step.want) {
			t.Errorf("%s later the store has %q, want %q", step.later, got, step.want)
		}
		if got, want := chunks(), 1+min(1, len(step.want)/2); got != want {
			t.Errorf("%s later the store has %d chunks, want %d", step.later, got, want)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "runs", open, "*", "*"))
	if err != nil || len(files) != 3 {
		t.Errorf("the open run has %q, %v", files, err)
	}
}

// TestCollectorLeavesWhatOthersWrote checks that a cluster which is given the store of another one removes nothing from
// it, and that values from before a cluster's claim stay if Temporal does not know their run.
func TestCollectorLeavesWhatOthersWrote(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	k, dir := collectorOf(t, y)
	keep(t, k, dir, "other-000001", 10*workers.DefaultRetention)
	claimOf := func(cluster string, since time.Time) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, store.ClaimKey), []byte(cluster+" "+since.UTC().Format(time.RFC3339)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k.Store().ClaimFor(y.Conn.Fleet, "test")
	for pass, claim := range []struct {
		cluster string
		since   time.Time
		want    int
	}{
		{"another-cluster", time.Now().Add(-12 * workers.DefaultRetention), 1},
		{"another-cluster", time.Now().Add(-12 * workers.DefaultRetention), 1},
		{y.Conn.Fleet, time.Now(), 1},
		{y.Conn.Fleet, time.Now(), 1},
		{y.Conn.Fleet, time.Now().Add(-12 * workers.DefaultRetention), 1},
		{y.Conn.Fleet, time.Now().Add(-12 * workers.DefaultRetention), 0},
	} {
		claimOf(claim.cluster, claim.since)
		k.SetClock(func() time.Time { return time.Now().Add(time.Duration(pass) * time.Hour) })
		if _, err := k.Pass(t.Context()); errors.Is(err, store.ErrForeign) != (claim.cluster != y.Conn.Fleet) {
			t.Errorf("pass %d: %v", pass, err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
		if err != nil || len(files) != claim.want {
			t.Errorf("after pass %d the store has %q, %v", pass, files, err)
		}
	}
}

// TestCollectorChecksTheNamespace checks that a server with another namespace of the same name, which knows no run,
// removes none.
func TestCollectorChecksTheNamespace(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	conn := *y.Conn
	conn.Fleet = "that of the server before"
	s, err := store.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	k := workers.NewCollector(&conn, s, y.Logger)
	if removed, err := k.Pass(t.Context()); err == nil || !strings.Contains(err.Error(), "restart") || removed != 0 {
		t.Errorf("removed %d, %v", removed, err)
	}
}

// TestCollectorLeavesTheStoreOfALiveCopy checks that two collectors of one store, which a cluster and a copy of its database have,
// remove nothing until one has ended, and that a run which has gone on since its end in a restored database keeps its values.
func TestCollectorLeavesTheStoreOfALiveCopy(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("a")
	closed := c.Do(`{name: copied, tasks: {a: {type: shell, spec: {command: x}}}}`).GetId()
	k, dir := collectorOf(t, c.Cluster)
	copied := workers.NewCollector(c.Conn, storetest.Open(t, dir), c.Logger)
	later := 2 * workers.DefaultRetention
	for _, each := range []workers.Collector{k, copied} {
		each.SetClock(func() time.Time { return time.Now().Add(later) })
	}
	keep(t, k, dir, closed, -2*workers.DefaultRetention)
	for range 2 {
		for _, each := range []workers.Collector{k, copied} {
			if err := each.Announce(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, each := range []workers.Collector{copied, k, copied} {
		if removed, err := each.Pass(t.Context()); err == nil || !strings.Contains(err.Error(), "a copy of this cluster") || removed != 0 {
			t.Errorf("removed %d, %v", removed, err)
		}
	}
	later += time.Hour // in which the other one gave no sign
	for _, want := range []int{0, 1} {
		if removed, err := copied.Pass(t.Context()); err != nil || removed != want {
			t.Errorf("removed %d, %v; want %d", removed, err, want)
		}
		later += 2 * workers.DefaultRetention
	}
}

func TestCollectorGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	k, dir := collectorOf(t, workertest.Shared(t))
	k.SetLimit(4)
	for n := range 10 {
		keep(t, k, dir, fmt.Sprintf("gone-%d", n), 10*workers.DefaultRetention)
		keep(t, k, dir, fmt.Sprintf("here-%d", n), time.Hour)
	}
	pass := func(hour int) {
		t.Helper()
		k.SetClock(func() time.Time { return time.Now().Add(time.Duration(hour) * time.Hour) })
		if _, err := k.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for hour := range 10 {
		pass(hour)
	}
	if got := kept(t, k); len(got) != 10 || strings.HasPrefix(got[0], "gone") {
		t.Errorf("twice five passes of four runs leave %q", got)
	}
	// The next passes start over.
	keep(t, k, dir, "gone-0", 10*workers.DefaultRetention)
	for hour := range 6 {
		pass(10 + hour)
	}
	if got := kept(t, k); len(got) != 10 {
		t.Errorf("six more passes leave %q", got)
	}
}

// TestCollectorGoesOnAfterAnError checks that a failed removal does not stop the others, unless every removal fails.
func TestCollectorGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	k, dir := collectorOf(t, workertest.Shared(t))
	// The store refuses to remove a folder whose name is not a valid run ID.
	bad := func(n int) {
		folder := filepath.Join(dir, "runs", fmt.Sprintf("a copy (%d)", n))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(folder, "x")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Time{}, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	pass := func(hour, removed int, fails bool) {
		t.Helper()
		k.SetClock(func() time.Time { return time.Now().Add(time.Duration(hour) * time.Hour) })
		if got, err := k.Pass(t.Context()); got != removed || (err != nil) != fails {
			t.Errorf("in hour %d it removed %d, %v; want %d", hour, got, err, removed)
		}
	}
	bad(0)
	keep(t, k, dir, "gone-0", 10*workers.DefaultRetention)
	pass(0, 0, false)
	pass(1, 1, false)
	for n := range workers.CollectErrors {
		bad(n)
	}
	keep(t, k, dir, "gone-0", 10*workers.DefaultRetention)
	pass(2, 0, false)
	pass(3, 0, true) // as many errors as a pass bears
	pass(4, 1, false)
}

// TestCollectorRemovesOldEntriesOfTheAudit checks that audit entries expire by their own age.
func TestCollectorRemovesOldEntriesOfTheAudit(t *testing.T) {
	t.Parallel()
	k, dir := collectorOf(t, workertest.Shared(t))
	now := time.Now()
	var keys []string
	for n, age := range []time.Duration{workers.DefaultRetention + time.Hour, workers.DefaultRetention - time.Hour, 0} {
		key := storekey.Audit(now.Add(-age), "5f3a91c2", int64(n))
		if err := k.Store().PutMessage(t.Context(), key, &v1.AuditPart{Entries: []*v1.AuditEntry{{By: "ann"}}}); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, key), now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	if _, err := k.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left []string
	for key, err := range k.Store().Keys(t.Context(), storekey.AuditPrefix) {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, key)
	}
	if !slices.Equal(left, keys[1:]) {
		t.Errorf("the audit has %q, want %q", left, keys[1:])
	}
}

// TestCollectorPassesAtItsInterval checks that passes come as often as they are set to, and that a run is not gone because two
// passes in a row miss it: they must be half an hour apart.
func TestCollectorPassesAtItsInterval(t *testing.T) {
	t.Parallel()
	k, dir := collectorOf(t, workertest.Shared(t))
	keep(t, k, dir, "gone-0", 10*workers.DefaultRetention)
	var later, asked atomic.Int64
	k.SetClock(func() time.Time { asked.Add(1); return time.Now().Add(time.Duration(later.Load())) })
	k.SetInterval(time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	var passes sync.WaitGroup
	passes.Go(func() { k.Run(ctx) })
	defer passes.Wait()
	defer cancel()
	workertest.Eventually(t, "many passes", func() bool { return asked.Load() > 100 })
	if got := kept(t, k); len(got) != 1 {
		t.Errorf("passes within moments leave %q", got)
	}
	later.Store(int64(31 * time.Minute))
	workertest.Eventually(t, "the run is removed", func() bool { return len(kept(t, k)) == 0 })
}

func TestCollectorEnds(t *testing.T) {
	t.Parallel()
	k, dir := collectorOf(t, workertest.Shared(t))
	keep(t, k, dir, "gone-0", 10*workers.DefaultRetention)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if removed, err := k.Pass(ctx); err == nil || removed != 0 {
		t.Errorf("removed %d, %v", removed, err)
	}
	k.Run(ctx)
}

func TestCollectorWarnsOfAForgetfulServer(t *testing.T) {
	t.Parallel()
	for retention, want := range map[time.Duration]bool{workers.DefaultRetention: false, workers.DefaultRetention + time.Hour: true, time.Hour: false} {
		k, _ := collectorOf(t, workertest.Shared(t))
		var said bytes.Buffer
		k.SetRetention(retention)
		k.SetLogger(slog.New(slog.NewTextHandler(&said, nil)))
		if err := k.WarnOfServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(said.String(), "level=WARN"); got != want {
			t.Errorf("with a retention of %s: %q", retention, said.String())
		}
	}
}

// TestCollectorRemovesCachedResults checks that reusable results expire by their own age, not by that of their run.
func TestCollectorRemovesCachedResults(t *testing.T) {
	t.Parallel()
	k, dir := collectorOf(t, workertest.Shared(t))
	for key, age := range map[string]time.Duration{"old": workers.DefaultRetention + time.Hour, "new": workers.DefaultRetention - time.Hour} {
		at := storekey.Cached("w", "build", key)
		if err := k.Store().Put(t.Context(), at, []byte("x")); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(dir, at), when, when); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, there := range map[string]bool{"old": false, "new": true} {
		if _, err := k.Store().Get(t.Context(), storekey.Cached("w", "build", key)); errors.Is(err, store.ErrNotFound) == there {
			t.Errorf("%s: %v", key, err)
		}
	}
}
