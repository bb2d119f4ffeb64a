//go:build engines

package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/dev/testneeds"
)

// hog uses 80 MB of memory for a moment.
const hog = `head -c 80000000 /dev/zero | tail -c 79000000 >/dev/null`

// needLimits returns an Executor that can set limits.
func needLimits(t *testing.T, m Mechanism) *Executor {
	t.Helper()
	e := newExecutor(t, Options{Mechanism: m})
	if err := e.bounds.validate(); err != nil {
		testneeds.Missing(t, "no limits here: %v", err)
	}
	return e
}

func TestMemoryLimitKillsTheAttempt(t *testing.T) {
	t.Parallel()
	e := needLimits(t, Cgroup)
	for name, test := range map[string]struct {
		a      executor.Attempt
		script string
		code   int
		oom    bool
	}{
		"too much":           {limited(32), "exec dd if=/dev/zero of=/dev/null bs=80M count=1", 137, true},
		"a child takes it":   {limited(32), hog, 137, true},
		"only a child ends":  {limited(32), "(" + hog + ") || true", 0, false},
		"little":             {limited(32), "true", 0, false},
		"no limit":           {executor.Attempt{}, hog, 0, false},
		"killed by itself":   {limited(32), "kill -9 $$", 137, false},
		"fails by itself":    {limited(32), "exit 137", 137, false},
		"only memory counts": {executor.Attempt{Limits: executor.Limits{Cores: 0.001, Processes: 1}}, "sh -c true; true", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second attempt may reuse the directory of the first
				r, _, err := run(t, e, test.a, test.script)
				if err != nil || r.ExitCode != test.code || r.OOMKilled != test.oom {
					t.Errorf("%+v, error %v; want exit code %d, OOM %v", r, err, test.code, test.oom)
				}
				if (r.Warning != "") != strings.HasSuffix(test.script, "|| true") {
					t.Errorf("warning %q", r.Warning)
				}
			}
		})
	}
}

// A batch is limited as a whole, and each attempt in it has its own outcome.
func TestBatchSharesOneMemoryLimit(t *testing.T) {
	t.Parallel()
	for _, m := range []Mechanism{Cgroup, EnvMarker, Group} {
		t.Run(string(m), func(t *testing.T) {
			e := needLimits(t, m)
			row, err := e.Batch(idPrefix+"/batch/c1", nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, test := range []struct {
				script string
				oom    bool
			}{{"true", false}, {hog, true}, {"exit 137", false}, {hog, true}, {"kill -9 $$", false}} {
				a := limited(32)
				a.ID, a.Grace, a.Spec = idPrefix+"/batch/c"+strconv.Itoa(i), time.Second, spec(t, map[string]any{"command": test.script})
				r, err := row.Run(t.Context(), a, func() {})
				if err != nil || r.OOMKilled != test.oom {
					t.Errorf("attempt %d: %+v, error %v", i, r, err)
				}
			}
			if err := row.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestConcurrentAttemptsHaveSeparateLimits(t *testing.T) {
	t.Parallel()
	e := needLimits(t, Cgroup)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			a, greedy := limited(32), i%2 == 0
			a.ID, a.Grace, a.Spec = fmt.Sprintf("%s/many/%d", idPrefix, i), time.Second, spec(t, map[string]any{"command": "sleep 0.1"})
			if greedy {
				a.Spec = spec(t, map[string]any{"command": hog})
			}
			if r, err := e.Run(t.Context(), a, func() {}); err != nil || r.OOMKilled != greedy {
				t.Errorf("%d: %+v, error %v", i, r, err)
			}
		})
	}
	all.Wait()
}

// Directories with limits are reused, unless that would affect the next attempt.
func TestDirectoriesWithLimitsAreReused(t *testing.T) {
	t.Parallel()
	e := needLimits(t, Cgroup)
	if e.bounds.inTree {
		t.Skip("the directories of cgroup2 have limits themselves")
	}
	shm := filepath.Join("/dev/shm", fmt.Sprintf("switchyard-test-%d", os.Getpid()))
	t.Cleanup(func() { os.Remove(shm) })
	for _, test := range []struct {
		script string
		made   int
	}{
		{"true", 1}, {"true", 1}, {hog, 1}, {"true", 1},
		{"head -c 1000000 /dev/zero >" + shm, 1}, {"true", 2},
	} {
		if _, _, err := run(t, e, limited(32), test.script); err != nil {
			t.Fatal(err)
		}
		if e.bounds.made != test.made {
			t.Errorf("%s: %d were made, want %d", test.script, e.bounds.made, test.made)
		}
	}
}

func TestLimitsAreWrittenForEachAttempt(t *testing.T) {
	t.Parallel()
	e := needLimits(t, Cgroup)
	for _, megabytes := range []int64{32, 2000, 0, 16, 1000} {
		r, _, err := run(t, e, limited(megabytes), hog)
		if err != nil || r.OOMKilled != (megabytes > 0 && megabytes < 80) {
			t.Errorf("%d MiB: %+v, error %v", megabytes, r, err)
		}
	}
}
