package workertest

import (
	"log/slog"
	"os"
	"sync"
	"testing"

	"go.temporal.io/sdk/worker"

	"switchyard/dev/testneeds"
	"switchyard/workers"
)

// sharedCluster is the cluster of all tests that need no control worker of their own.
var sharedCluster struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Main runs the tests of a package that uses clusters, and exits. It lets four tests run at once, stops the shared cluster
// after the last one, and fails if goroutines are left. The TestMain of the package calls it.
func Main(m *testing.M) {
	// Without a checksum, the SDK would first read and hash the test's whole binary.
	worker.SetBinaryChecksum("test")
	// Most tests mainly wait for heartbeats, leases and back-offs.
	testneeds.Parallel(4)
	testneeds.NoLeaks(stopping{m})
}

// stopping runs tests and stops the shared cluster before goleak counts goroutines.
type stopping struct{ m *testing.M }

func (s stopping) Run() int {
	code := s.m.Run()
	if y := sharedCluster.cluster; y != nil {
		if err := y.stop(); err != nil {
			slog.Error("stop the shared cluster", "error", err)
			code = max(code, 1)
		}
		if err := os.RemoveAll(y.Dir); err != nil {
			slog.Error("remove the shared cluster", "error", err)
		}
	}
	return code
}

// Shared returns the cluster that the tests of the package share, and starts it for the first of them. Each test has nodes
// of its own there, see [Cluster.Nodes].
func Shared(t *testing.T) *Cluster {
	t.Helper()
	s := &sharedCluster
	s.once.Do(func() {
		dir, err := os.MkdirTemp("", "switchyard-workers-")
		if err != nil {
			s.err = err
			return
		}
		s.cluster, s.err = startCluster(dir, workers.ControlConfig{})
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
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
