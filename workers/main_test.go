package workers

import (
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/worker"
	"go.uber.org/goleak"

	"switchyard/dev/testneeds"
)

// limit bounds how long a test waits for an event that must happen. It far exceeds the time that anything takes, so
// that no test fails on a slow machine.
const limit = 5 * time.Minute

// sharedCluster is the cluster of all tests that need no control worker of their own.
var sharedCluster struct {
	once    sync.Once
	cluster *cluster
	err     error
}

func TestMain(m *testing.M) {
	// Without a checksum, the SDK would first read and hash the test's whole binary.
	worker.SetBinaryChecksum("test")
	// Most tests mainly wait for heartbeats, leases and back-offs.
	testneeds.Parallel(4)
	goleak.VerifyTestMain(stopping{m})
}

// stopping stops the shared cluster before goleak counts goroutines.
type stopping struct{ m *testing.M }

func (s stopping) Run() int {
	code := s.m.Run()
	if y := sharedCluster.cluster; y != nil {
		if err := y.stop(); err != nil {
			slog.Error("stop the shared cluster", "error", err)
			code = max(code, 1)
		}
		if err := os.RemoveAll(y.dir); err != nil {
			slog.Error("remove the shared cluster", "error", err)
		}
	}
	return code
}

// shared returns the cluster that tests share. Each test has its own nodes there.
func shared(t *testing.T) *cluster {
	t.Helper()
	s := &sharedCluster
	s.once.Do(func() {
		dir, err := os.MkdirTemp("", "switchyard-workers-")
		if err != nil {
			s.err = err
			return
		}
		s.cluster, s.err = startCluster(dir, ControlConfig{})
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
}

// own returns a cluster for this test alone.
func own(t *testing.T, cfg ControlConfig) *cluster {
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
