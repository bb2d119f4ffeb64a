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

// limit is how long a test waits for something that will happen. It is far
// beyond what anything takes, so that a slow machine fails no test.
const limit = 5 * time.Minute

// sharedYard is the yard of all tests that need no control worker of their own.
var sharedYard struct {
	once sync.Once
	yard *yard
	err  error
}

func TestMain(m *testing.M) {
	// Otherwise the SDK reads and hashes the test's whole binary first.
	worker.SetBinaryChecksum("test")
	// Most tests wait: for heartbeats, leases and back-offs.
	testneeds.Parallel(4)
	goleak.VerifyTestMain(stopping{m})
}

// stopping ends the shared yard before goroutines are counted.
type stopping struct{ m *testing.M }

func (s stopping) Run() int {
	code := s.m.Run()
	if y := sharedYard.yard; y != nil {
		if err := y.stop(); err != nil {
			slog.Error("stop the shared yard", "error", err)
			code = max(code, 1)
		}
		if err := os.RemoveAll(y.dir); err != nil {
			slog.Error("remove the shared yard", "error", err)
		}
	}
	return code
}

// shared is the yard that tests share. Each has nodes of its own there.
func shared(t *testing.T) *yard {
	t.Helper()
	s := &sharedYard
	s.once.Do(func() {
		dir, err := os.MkdirTemp("", "switchyard-workers-")
		if err != nil {
			s.err = err
			return
		}
		s.yard, s.err = startYard(dir, ControlConfig{})
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.yard
}

// own is a yard for this test alone.
func own(t *testing.T, cfg ControlConfig) *yard {
	t.Helper()
	y, err := startYard(t.TempDir(), cfg)
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
