package store

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
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"gocloud.dev/blob/memblob"
	"pgregory.net/rapid"

	"switchyard/activities/store/storekey"
	"switchyard/dev/testneeds"
)

// gateway is an upstream in memory that can go away.
type gateway struct {
	*bucket
	mu     sync.Mutex
	away   bool
	stuck  bool // requests hang rather than fail
	refuse map[string]connect.Code
	stored []string // keys in order of arrival
	tries  int
}

func newGateway() *gateway {
	return &gateway{bucket: &bucket{Bucket: memblob.OpenBucket(nil), url: "http://gateway"}, refuse: map[string]connect.Code{}}
}

func (g *gateway) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

func (g *gateway) order() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.stored)
}

func (g *gateway) storeOnce(ctx context.Context, key string, value []byte, ifAbsent bool) (existed bool, err error) {
	g.mu.Lock()
	g.tries++
	if g.stuck {
		g.mu.Unlock()
		<-ctx.Done()
		return false, ctx.Err()
	}
	defer g.mu.Unlock()
	switch {
	case g.away:
		return false, connect.NewError(connect.CodeUnavailable, errors.New("connection refused"))
	case g.refuse[key] != 0:
		return false, connect.NewError(g.refuse[key], errors.New("no"))
	}
	if ifAbsent {
		existed, err = g.putIfAbsent(ctx, key, value)
	} else {
		err = g.put(ctx, key, value)
	}
	if err == nil && !existed && key != storekey.Probe(ProbeRun) {
		g.stored = append(g.stored, key)
	}
	return existed, err
}

// close keeps the values for the next spooler.
func (g *gateway) close() error { return nil }

// waitLimit is far beyond the duration of any test here.
const waitLimit = 2 * time.Minute

func spoolTo(t testing.TB, g *gateway, dir string, change ...func(*SpoolOptions)) *spooler {
	t.Helper()
	o := SpoolOptions{Dir: dir, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&o)
	}
	s, err := newSpooler(t.Context(), g, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// crash ends a spooler like a kill of its process, as far as files are concerned.
func (s *spooler) crash(t testing.TB) {
	t.Helper()
	s.cancel()
	<-s.ended
	if err := s.spool.close(); err != nil {
		t.Fatal(err)
	}
}

func (s *spooler) awaitEmpty(t rapid.TB) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(time.Millisecond) {
		if n, bytes := s.spool.size(); n == 0 {
			if bytes != 0 {
				t.Fatalf("an empty spool holds %d bytes", bytes)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the spool does not become empty")
		}
	}
}

func mustPut(t rapid.TB, b backend, key, value string) {
	t.Helper()
	if err := b.put(context.Background(), key, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

func checkValue(t testing.TB, b backend, key, want string) {
	t.Helper()
	if got, err := b.get(t.Context(), key); err != nil || string(got) != want {
		t.Errorf("%s is %.40q, %v; want %.40q", key, got, err, want)
	}
}

func chunk(n int) string { return storekey.LogChunk("ci-0k", 0, "build", 0, 1, int64(n)) }

func TestSpoolKeepsValuesWhileTheGatewayIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway()
		s := spoolTo(t, g, t.TempDir())
		mustPut(t, s, chunk(0), "zero")
		checkValue(t, g, chunk(0), "zero")
		g.set(func() { g.away = true })
		mustPut(t, s, chunk(1), "one")
		mustPut(t, s, chunk(2), "two")
		mustPut(t, s, storekey.Status("ci-0k", 0), "old")
		mustPut(t, s, storekey.Status("ci-0k", 0), "new")
		for key, want := range map[string]string{chunk(0): "zero", chunk(1): "one", chunk(2): "two", storekey.Status("ci-0k", 0): "new"} {
			checkValue(t, s, key, want)
		}
		var keys []string
		for key, err := range s.keys(t.Context(), storekey.LogsPrefix("ci-0k", "build")) {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
		}
		if want := []string{chunk(0), chunk(1), chunk(2)}; !slices.Equal(keys, want) {
			t.Errorf("keys %q, want %q", keys, want)
		}
		g.set(func() { g.away = false })
		s.awaitEmpty(t)
		for key, want := range map[string]string{chunk(1): "one", chunk(2): "two", storekey.Status("ci-0k", 0): "new"} {
			checkValue(t, g, key, want)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(s.spool.dir)
		if err != nil || len(files) != 1 {
			t.Errorf("files in the spool besides its lock: %v, %v", files, err)
		}
	})
}

func TestSpooledPutsDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGateway()
		g.stuck = true
		s := spoolTo(t, g, t.TempDir())
		defer s.crash(t)
		// The first put notices that the gateway is away.
		mustPut(t, s, chunk(0), "x")
		tries := func() (n int) { g.set(func() { n = g.tries }); return n }
		before := tries()
		for n := range 200 {
			mustPut(t, s, chunk(n+1), "x")
		}
		// The upload loop may have tried meanwhile; the puts have not.
		if n := tries() - before; n > 3 {
			t.Errorf("200 puts made %d tries", n)
		}
	})
}

func TestSpoolKeepsTheOrderOfALog(t *testing.T) {
	testneeds.Checks(t, 30)
	rapid.Check(t, func(rt *rapid.T) {
		g := newGateway()
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		s := spoolTo(t, g, dir)
		want := map[string][]string{}
		next := map[string]int64{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				g.set(func() { g.away = !g.away })
			case 1:
				s.crash(t)
				s = spoolTo(t, g, dir)
			default:
				task := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "task")
				key := storekey.LogChunk("ci-0k", 0, task, 0, 0, next[task])
				next[task]++
				want[task] = append(want[task], key)
				mustPut(rt, s, key, key)
			}
		}
		g.set(func() { g.away = false })
		s.awaitEmpty(rt)
		if err := s.close(); err != nil {
			rt.Fatal(err)
		}
		for task, keys := range want {
			var got []string
			for _, key := range g.order() {
				// A crash between the arrival of a value and its removal from the spool uploads it twice.
				if strings.HasPrefix(key, storekey.LogsPrefix("ci-0k", task)) && !slices.Contains(got, key) {
					got = append(got, key)
				}
			}
			if !slices.Equal(got, keys) {
				rt.Fatalf("stored %q, want %q", got, keys)
			}
		}
	})
}

func TestSpoolOfADeadProcessIsStored(t *testing.T) {
	g, dir := newGateway(), t.TempDir()
	g.away = true
	s := spoolTo(t, g, dir)
	mustPut(t, s, chunk(0), "zero")
	if _, err := s.putIfAbsent(expired(t), storekey.Result("ci-0k", 0, "build", 0), []byte("record")); err != nil {
		t.Fatal(err)
	}
	s.crash(t)
	// The files are remains of a write that was killed half-way, and a file of another program.
	for _, name := range []string{fileName(7) + storekey.TemporarySuffix, fileName(8), "README"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("put"), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	s = spoolTo(t, g, dir)
	checkValue(t, s, storekey.Result("ci-0k", 0, "build", 0), "record")
	g.set(func() { g.away = false })
	mustPut(t, s, chunk(1), "one")
	s.awaitEmpty(t)
	checkValue(t, g, chunk(0), "zero")
	checkValue(t, g, chunk(1), "one")
	checkValue(t, g, storekey.Result("ci-0k", 0, "build", 0), "record")
	if got := g.order(); slices.Index(got, chunk(0)) > slices.Index(got, chunk(1)) {
		t.Errorf("the order is %q", got)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

func TestTornValueIsDropped(t *testing.T) {
	g, dir := newGateway(), t.TempDir()
	g.away = true
	s := spoolTo(t, g, dir)
	mustPut(t, s, chunk(0), "zero")
	mustPut(t, s, chunk(1), "one")
	s.crash(t)
	path := filepath.Join(dir, fileName(0))
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(text, []byte("zero"), make([]byte, 4), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.away = false
	s = spoolTo(t, g, dir)
	s.awaitEmpty(t)
	if got := g.order(); !slices.Equal(got, []string{chunk(1)}) {
		t.Errorf("stored: %q", got)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

// expired returns a context whose deadline has passed.
func expired(t testing.TB) context.Context {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	t.Cleanup(cancel)
	return ctx
}

func TestSpooledRecordGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway()
		s := spoolTo(t, g, t.TempDir())
		record := func(task string) string { return storekey.Result("ci-0k", 0, task, 0) }
		if existed, err := s.putIfAbsent(t.Context(), record("direct"), []byte("mine")); err != nil || existed {
			t.Fatalf("existed %t, %v", existed, err)
		}
		if existed, err := s.putIfAbsent(t.Context(), record("direct"), []byte("late")); err != nil || !existed {
			t.Fatalf("existed %t, %v", existed, err)
		}
		g.set(func() { g.away = true })
		for i, value := range []string{"mine", "late"} {
			if existed, err := s.putIfAbsent(expired(t), record("spooled"), []byte(value)); err != nil || existed != (i > 0) {
				t.Fatalf("value %d: existed %t, %v", i, existed, err)
			}
		}
		if _, err := s.putIfAbsent(expired(t), record("taken"), []byte("mine")); err != nil {
			t.Fatal(err)
		}
		g.set(func() {
			if err := g.put(t.Context(), record("taken"), []byte("theirs")); err != nil {
				t.Error(err)
			}
			g.away = false
		})
		s.awaitEmpty(t)
		checkValue(t, s, record("direct"), "mine")
		checkValue(t, s, record("spooled"), "mine")
		checkValue(t, s, record("taken"), "theirs")

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.putIfAbsent(ctx, record("cancelled"), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("with a cancelled context: %v", err)
		}
		if err := s.put(ctx, record("cancelled"), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("with a cancelled context: %v", err)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A record waits for the gateway in the spool, where the next process finds it if this one is killed.
func TestRecordWaitsForTheGateway(t *testing.T) {
	g := newGateway()
	g.away = true
	s := spoolTo(t, g, t.TempDir())
	key := storekey.Result("ci-0k", 0, "build", 0)
	done := make(chan error, 1)
	go func() {
		_, err := s.putIfAbsent(t.Context(), key, []byte("record"))
		done <- err
	}()
	for tried := 0; tried < 2; g.set(func() { tried = g.tries }) {
		time.Sleep(time.Millisecond)
	}
	if value, err := s.spool.get(key); err != nil || string(value) != "record" {
		t.Errorf("while it waits, the spool holds %q (%v)", value, err)
	}
	g.set(func() { g.away = false })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.awaitEmpty(t)
	if got := g.order(); len(got) != 1 {
		t.Errorf("stored: %q", got)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

func TestSpoolHasABound(t *testing.T) {
	g := newGateway()
	g.away = true
	s := spoolTo(t, g, t.TempDir(), func(o *SpoolOptions) { o.LimitBytes = 16 << 10 })
	value := strings.Repeat("x", 1<<10)
	n := 0
	for ; ; n++ {
		err := s.put(t.Context(), chunk(n), []byte(value))
		if errors.Is(err, ErrSpoolFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 10 || n > 14 {
		t.Errorf("%d KiB of logs are in a spool of 16", n)
	}
	if _, err := s.putIfAbsent(expired(t), storekey.Result("ci-0k", 0, "build", 0), []byte("record")); err != nil {
		t.Errorf("a result has no room besides logs: %v", err)
	}
	g.set(func() { g.away = false })
	s.awaitEmpty(t)
	mustPut(t, s, chunk(n), value)
	if err := s.put(t.Context(), chunk(n+1), make([]byte, MaxValueBytes+1)); !errors.Is(err, errTooLarge) {
		t.Errorf("a value above the bound: %v", err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

func TestValueThatIsRefusedHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checkpoint := storekey.Checkpoint("ci-0k", 0, "build", 1)
		g := newGateway()
		g.away = true
		foreign := storekey.Result("ci-1k", 0, "build", 1)
		g.refuse[chunk(0)], g.refuse[checkpoint], g.refuse[foreign] = connect.CodeAlreadyExists, connect.CodeInvalidArgument, connect.CodePermissionDenied
		s := spoolTo(t, g, t.TempDir())
		mustPut(t, s, chunk(0), "bad")
		mustPut(t, s, checkpoint, "bad")
		mustPut(t, s, foreign, "of a task that the node was not given")
		mustPut(t, s, chunk(1), "good")
		g.set(func() { g.away = false })
		s.awaitEmpty(t)
		if got := g.order(); !slices.Equal(got, []string{chunk(1)}) {
			t.Errorf("stored: %q", got)
		}
		if err := s.put(t.Context(), "../etc", nil); err != nil {
			t.Errorf("the gateway is to check the key: %v", err)
		}
		g.set(func() { g.away = true })
		mustPut(t, s, chunk(2), "") // notices that the gateway is away
		if err := s.put(t.Context(), "../etc", nil); err == nil {
			t.Error("a key that leads out of the store is spooled")
		}
		g.set(func() { g.away = false })
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A store that keeps failing one value and accepts others is not away.
func TestValueThatAlwaysFailsHoldsUpNoOther(t *testing.T) {
	g := newGateway()
	g.away = true
	g.refuse[chunk(0)] = connect.CodeInternal
	s := spoolTo(t, g, t.TempDir())
	mustPut(t, s, chunk(0), "bad")
	mustPut(t, s, storekey.Status("ci-0k", 0), "good")
	g.set(func() { g.away = false })
	s.awaitEmpty(t)
	if got := g.order(); !slices.Equal(got, []string{storekey.Status("ci-0k", 0)}) {
		t.Errorf("stored: %q", got)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

// A node that writes directly to a folder or a bucket spools values like one that uses a gateway.
func TestSpoolKeepsValuesWhileAFolderIsAway(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	shared, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	s, err := shared.WithSpool(t.Context(), SpoolOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	before, record := chunk(0), storekey.Result("ci-0k", 0, "build", 0)
	if err := s.Put(t.Context(), before, []byte("before")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := s.Put(t.Context(), chunk(n+1), []byte("meanwhile")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.PutIfAbsent(expired(t), record, []byte("record")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), record); err != nil || string(got) != "record" {
		t.Errorf("the record is %q, %v", got, err)
	}
	if _, err := s.Get(t.Context(), before); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("what is only in the store: %v", err)
	}
	if err := s.Probe(t.Context(), ProbeRun); err == nil {
		t.Error("it answers a probe")
	}
	if n := s.Spooled(); n != 4 {
		t.Errorf("%d values are spooled, want 4", n)
	}
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	s.backend.(*spooler).awaitEmpty(t)
	for key, want := range map[string]string{before: "before", chunk(1): "meanwhile", chunk(3): "meanwhile", record: "record"} {
		if got, err := shared.Get(t.Context(), key); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", key, got, err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A value stays in the spool while the store has no space for it.
func TestValueWithoutSpaceStaysInTheSpool(t *testing.T) {
	s := &spooler{upstream: newGateway()}
	v := &spooled{}
	for range 2 * Tries {
		if s.refuses(t.Context(), v, fmt.Errorf("write: %w", syscall.ENOSPC)) {
			t.Fatal("a value is dropped for want of space")
		}
	}
}

func TestCloseStoresWhatItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, dir := newGateway(), t.TempDir()
		g.away = true
		s := spoolTo(t, g, dir)
		for n := range 50 {
			mustPut(t, s, chunk(n), "x")
		}
		g.set(func() { g.away = false })
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		if n := len(g.order()); n != 50 {
			t.Errorf("%d values are stored, want 50", n)
		}
	})
}

// TestCloseLeavesTheSpoolToASuccessor checks how long close waits for a store that is away, and that the values stay.
func TestCloseLeavesTheSpoolToASuccessor(t *testing.T) {
	for hasSuccessor, limit := range map[bool]time.Duration{true: awayCloseTimeout, false: closeTimeout} {
		synctest.Test(t, func(t *testing.T) {
			g, dir := newGateway(), t.TempDir()
			g.away = true
			s, err := newSpooler(t.Context(), g, SpoolOptions{Dir: dir, HasSuccessor: hasSuccessor})
			if err != nil {
				t.Fatal(err)
			}
			mustPut(t, s, chunk(0), "x")
			began := time.Now()
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != limit {
				t.Errorf("close took %s, want %s", took, limit)
			}
			g.set(func() { g.away = false })
			if err := spoolTo(t, g, dir).close(); err != nil {
				t.Fatal(err)
			}
			if n := len(g.order()); n != 1 {
				t.Errorf("%d values are stored by the successor", n)
			}
		})
	}
}

func TestSpoolBelongsToOneProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, dir := newGateway(), t.TempDir()
		s := spoolTo(t, g, dir)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := newSpooler(ctx, g, SpoolOptions{Dir: dir}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second spool in the folder: %v", err)
		}
		opened := make(chan *spooler)
		go func() {
			next, err := newSpooler(context.Background(), g, SpoolOptions{Dir: dir})
			if err != nil {
				t.Error(err)
			}
			opened <- next
		}()
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		if next := <-opened; next != nil {
			if err := next.close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
