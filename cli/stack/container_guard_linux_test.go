package stack

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/dev/testneeds"
)

// A guard that is killed is replaced while its worker lives, and ends with the worker if it has nothing to do.
func TestKilledGuardIsReplaced(t *testing.T) {
	g := newContainerGuards(slog.New(slog.DiscardHandler))
	if err := g.start(t.TempDir(), "n", "f"); err != nil {
		t.Fatal(err)
	}
	var first int
	testneeds.Await(t, "a guard runs", func() bool { first = guardOf(os.Getpid()); return first > 0 })
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testneeds.Await(t, "another guard runs", func() bool { now := guardOf(os.Getpid()); return now > 0 && now != first })
	if err := g.close(); err != nil {
		t.Error(err)
	}
	testneeds.Await(t, "no guard is left", func() bool { return guardOf(os.Getpid()) == 0 })
}

// guardOf returns the PID of a guard that is a child of a process, or 0.
func guardOf(parent int) int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range files {
		text, _ := os.ReadFile(path)
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		if fields := strings.Fields(string(rest)); bytes.HasPrefix(text, []byte(guardName+"\x00")) && len(fields) > 1 && fields[1] == fmt.Sprint(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	return 0
}

// A worker without signs of life is stalled, and one with a closed pipe has ended.
func TestGuardedWorkerStallsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, start := &guardedWorker{sign: time.Now()}, time.Now()
		signs, worker := io.Pipe()
		go w.listen(signs)
		want := func(when string, before time.Time, isGone, isStalled bool) {
			t.Helper()
			synctest.Wait()
			if at, gone, stalled := w.state(); !at.Equal(before) || gone != isGone || stalled != isStalled {
				t.Errorf("%s: before %v, gone %v, stalled %v", when, at.Sub(start), gone, stalled)
			}
		}
		time.Sleep(guardSilence)
		want("silent for a while", time.Now(), false, false)
		time.Sleep(time.Millisecond)
		want("silent for too long", time.Now(), false, true)
		_, _ = worker.Write([]byte{0})
		want("back", time.Now(), false, false)
		worker.Close()
		ended := time.Now()
		time.Sleep(time.Minute)
		want("ended", ended, true, false)
	})
}
