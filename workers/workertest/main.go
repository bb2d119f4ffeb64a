package workertest

import (
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"testing"

	"go.temporal.io/sdk/worker"
	"go.uber.org/goleak"

	"switchyard/dev/testneeds"
	"switchyard/workers"
	"switchyard/workflows/limits"
)

// shared holds the clusters of all tests that need no control worker of their own, by the limits of their runs.
var shared struct {
	mu       sync.Mutex
	clusters map[limits.Run]*sharedCluster
}

type sharedCluster struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Main runs the tests of a package that uses clusters, and exits. It lets ten tests run at once, stops the shared clusters
// after the last one, and fails if goroutines are left. The TestMain of the package calls it.
func Main(m *testing.M) { runAndExit(stopping{m}) }

// MainBare runs tests like [Main], for a package whose workers follow scripts of its own. All its tests share a cluster without
// a control process, which starts before the first test. prepare starts the workers of the package, and returns what stops them.
func MainBare(m *testing.M, prepare func(*Cluster) (stop func())) { runAndExit(bare{m, prepare}) }

func runAndExit(tests goleak.TestingM) {
	// Without a checksum, the SDK would first read and hash the test's whole binary.
	worker.SetBinaryChecksum("test")
	// Tests are short of processor time, not of memory.
	debug.SetGCPercent(400)
	// Most tests mainly wait for heartbeats, leases and back-offs.
	testneeds.Parallel(10)
	testneeds.NoLeaks(tests)
}

// bare runs tests on a cluster without a control process.
type bare struct {
	*testing.M
	prepare func(*Cluster) (stop func())
}

func (b bare) Run() int {
	dir, err := os.MkdirTemp("", "switchyard-bare-")
	if err != nil {
		slog.Error("start a cluster", "error", err)
		return 1
	}
	y, err := startBare(dir)
	if err != nil {
		slog.Error("start a cluster", "error", err)
		return 1
	}
	stop := b.prepare(y)
	code := b.M.Run()
	stop()
	if err := errors.Join(y.stop(), os.RemoveAll(dir)); err != nil {
		slog.Error("stop a cluster", "error", err)
		code = max(code, 1)
	}
	return code
}

// stopping runs tests and stops the shared clusters before goleak counts goroutines.
type stopping struct{ m *testing.M }

func (s stopping) Run() int {
	code := s.m.Run()
	for _, c := range shared.clusters {
		if c.cluster == nil {
			continue
		}
		if err := errors.Join(c.cluster.stop(), os.RemoveAll(c.cluster.Dir)); err != nil {
			slog.Error("stop a shared cluster", "error", err)
			code = max(code, 1)
		}
	}
	return code
}

// Shared returns the cluster that the tests of the package share, and starts it for the first of them. Each test has nodes
// of its own there, see [Cluster.Nodes].
func Shared(t *testing.T) *Cluster {
	t.Helper()
	return SharedWithin(t, limits.Run{})
}

// SharedWithin returns a cluster like that of [Shared]. Its runs keep to limits, and tests with the same limits share it.
func SharedWithin(t *testing.T, l limits.Run) *Cluster {
	t.Helper()
	shared.mu.Lock()
	c := shared.clusters[l]
	if c == nil {
		c = &sharedCluster{}
		if shared.clusters == nil {
			shared.clusters = map[limits.Run]*sharedCluster{}
		}
		shared.clusters[l] = c
	}
	shared.mu.Unlock()
	c.once.Do(func() {
		dir, err := os.MkdirTemp("", "switchyard-workers-")
		if err != nil {
			c.err = err
			return
		}
		c.cluster, c.err = startCluster(dir, workers.ControlConfig{Limits: l, Locker: quickLocker})
	})
	if c.err != nil {
		t.Fatal(c.err)
	}
	return c.cluster
}

// Own starts a cluster for a test that needs a control process of its own. It stops with the test. Of the configuration,
// the client, the store and the logger are set.
func Own(t *testing.T, cfg workers.ControlConfig) *Cluster {
	t.Helper()
	y, err := startCluster(t.TempDir(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := y.stop(); err != nil {
			t.Error(err)
		}
	})
	return y
}
