//go:build engines

package shell

import (
	"bytes"
	"testing"
	"time"

	"switchyard/activities/executor"
)

// The next attempt reuses a directory, alone or in a batch, unless the previous
// attempt may have left something in it that affects the next one.
func TestCleanCgroupsAreReused(t *testing.T) {
	const own = `d=$PARENT/$(sed -n 's#^0::.*/##p' /proc/self/cgroup); `
	for name, test := range map[string]struct {
		script string
		again  bool
	}{
		"nothing":        {"true", true},
		"a failure":      {"exit 3", true},
		"a child":        {"sleep 1000 & true", false},
		"a kill -9":      {"kill -9 $$", false},
		"its own kill":   {own + "echo 1 >$d/cgroup.kill; sleep 1000", false},
		"a cgroup below": {own + "mkdir $d/below", false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExecutor(t, Options{Mechanism: Cgroup})
			all := e.trees.(*cgroupFactory)
			if !all.bare {
				t.Skip("cgroups have controllers here")
			}
			run := func(run func(executor.Attempt) (executor.Result, error), script, want string) {
				t.Helper()
				var out bytes.Buffer
				r, err := run(executor.Attempt{
					ID: idPrefix + "/again/c1", Spec: spec(t, map[string]any{"command": script}), Env: map[string]string{"PARENT": all.parent.Path},
					Streams: executor.Streams{Stdout: &out}, Ending: executor.Ending{Grace: time.Second},
				})
				if err != nil || out.String() != want || want != "" && r.ExitCode != 0 {
					t.Errorf("%s: %+v, %q, error %v", script, r, out.String(), err)
				}
			}
			alone := func(a executor.Attempt) (executor.Result, error) { return e.Run(t.Context(), a, func() {}) }
			made := func(do func()) int64 {
				before := all.next.Load()
				do()
				return all.next.Load() - before
			}
			run(alone, "true", "")
			if n := made(func() {
				run(alone, test.script, "")
				run(alone, "echo next", "next\n")
			}); (n == 0) != test.again {
				t.Errorf("%d directories were made for the next attempt", n)
			}
			row, err := e.Batch(idPrefix+"/again/c2", nil)
			if err != nil {
				t.Fatal(err)
			}
			run(func(a executor.Attempt) (executor.Result, error) { return row.Run(t.Context(), a, func() {}) }, test.script, "")
			run(func(a executor.Attempt) (executor.Result, error) { return row.Run(t.Context(), a, func() {}) }, "echo member", "member\n")
			if err := row.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The directory of a lost lease is not reused, since the watchdog may kill it at any
// time.
func TestCgroupsOfALostLeaseAreNotReused(t *testing.T) {
	e := newExecutor(t, Options{Mechanism: Cgroup})
	all := e.trees.(*cgroupFactory)
	for range 3 {
		tr, err := all.enclose(idPrefix+"/lost/c1", executor.Ending{Lease: executor.NewLease(0, 1, 2)}, executor.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		idle := len(all.idle[0])
		if err := tr.end(); err != nil || len(all.idle[0]) > idle {
			t.Errorf("%d are idle, %d before; error %v", len(all.idle[0]), idle, err)
		}
	}
}
