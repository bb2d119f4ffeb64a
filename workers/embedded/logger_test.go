package embedded

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/server/common/log/tag"
)

// TestFatalWhileBuilding lets another listener take a port that was free when it was chosen.
func TestFatalWhileBuilding(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	logs := newRecords()
	logger := newServerLogger(slog.New(logs), "")
	err = logger.guard(func() error {
		_, err := net.Listen("tcp", taken.Addr().String())
		logger.Fatal("cannot listen", tag.Error(err))
		return nil
	})
	if fatal, ok := errors.AsType[*fatalError](err); !ok || !fatal.lostPort() {
		t.Errorf("got %v, want an error by which Start knows to try again", err)
	}
	if lines := logs.all(); len(lines) > 0 {
		t.Errorf("logged what is returned: %q", lines)
	}
	refused := errors.New("refused")
	if err := logger.guard(func() error { return refused }); err != refused {
		t.Errorf("got %v", err)
	}
}

func TestFatalAfterStart(t *testing.T) {
	t.Parallel()
	logs := newRecords()
	logger := newServerLogger(slog.New(logs), "")
	ended := make(chan struct{})
	went := false
	go func() {
		defer close(ended)
		logger.Fatal("cannot serve", tag.Error(errors.New("closed")))
		went = true
	}()
	<-ended
	if lines := logs.all(); went || !slices.Equal(lines, []string{"ERROR cannot serve error=closed"}) {
		t.Errorf("went on: %v, logged: %q", went, lines)
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	logs := newRecords()
	logger := newServerLogger(slog.New(logs), "")
	logger.Info("one")
	logger.Warn("two")
	logger.Error("three", tag.NewInt("count", 3))
	logger.stopping.Store(true)
	logger.Error("four")
	if lines := logs.all(); !slices.Equal(lines, []string{"INFO three count=3"}) {
		t.Errorf("logged %q", lines)
	}
}

func TestFaultOfTheDatabaseIsRecordedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logs := newRecords()
		logger := newServerLogger(slog.New(logs), "/data/t.db")
		recorded := func() (n int) {
			for _, line := range logs.all() {
				if strings.HasPrefix(line, "ERROR Temporal cannot work") && strings.Contains(line, "database=/data/t.db") {
					n++
				}
			}
			return n
		}
		logger.Error("Persistent fetch operation Failure", tag.Error(errors.New("shard status unknown")))
		if err := logger.faults.current(); err != nil || recorded() != 0 {
			t.Fatalf("%v, %q", err, logs.all())
		}
		for range 90 {
			logger.Error("service failures", tag.Error(errors.New("UpdateShard operation failed. Failed to commit transaction. Error: database or disk is full (13)")))
			if err := logger.faults.current(); err == nil || !strings.Contains(err.Error(), "free some space") {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n := recorded(); n != 2 {
			t.Errorf("%d records in 90 s", n)
		}
		time.Sleep(faultAge)
		if err := logger.faults.current(); err != nil {
			t.Errorf("after the fault: %v", err)
		}
	})
}
