//go:build engines

package shell

import (
	"path/filepath"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/cgroup"
	"switchyard/dev/testneeds"
)

func TestCgroupConformance(t *testing.T) { conformance(t, Cgroup, true) }

// TestCgroupsHoldAttempts repeats tests of the portable mechanism with cgroups.
func TestCgroupsHoldAttempts(t *testing.T) {
	noZombiesAreLeft(t, Cgroup)
	for name, test := range map[string]func(*testing.T, Mechanism){
		"time and memory":       resultReportsTimeAndMemory,
		"apart from each other": attemptsDoNotEndEachOther,
		"pause in a batch":      pauseSparesTheNextOfABatch,
		"lost lease":            lostLeaseDoesNotStart,
		"entered programs":      enteredProgramsEnd,
		"leave":                 leave,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, Cgroup)
		})
	}
}

// TestWatchdogEndsCgroupsAndSandboxes repeats tests of the portable mechanism with cgroups and in sandboxes.
func TestWatchdogEndsCgroupsAndSandboxes(t *testing.T) {
	for name, one := range map[string]struct {
		mechanism Mechanism
		env       []string
	}{"cgroup": {Cgroup, nil}, "sandbox": {Cgroup, []string{helperSandbox + "=yes"}}, "sandbox without cgroup": {EnvMarker, []string{helperSandbox + "=yes"}}} {
		for what, test := range map[string]func(*testing.T, Mechanism, ...string){
			"killed": endsTheTree, "killed with sessions": endsSessions, "stopped": endsTheTreeOfAStopped,
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				test(t, one.mechanism, one.env...)
			})
		}
	}
}

// Without a watchdog, the parent-death signal ends the program itself. With cgroups, the next
// worker that starts ends the other processes.
func TestNextWorkerKillsProcessesOfAKilledOne(t *testing.T) {
	h := startHelper(t, Cgroup, "")
	h.kill(t)
	for deadline := time.Now().Add(5 * time.Minute); gone(h.grandchild); {
		// Another process of this machine has started an executor in the meantime.
		if time.Now().After(deadline) {
			t.Fatal("the grandchild is always gone already, the test is void")
		}
		h = startHelper(t, Cgroup, "")
		h.kill(t)
	}
	newExecutor(t, Options{Mechanism: Cgroup})
	testneeds.Await(t, "the task's tree is gone", func() bool { return len(leftOf(t, h.id)) == 0 && gone(h.grandchild) })
	testneeds.Await(t, "no cgroup is left", func() bool { return len(cgroupsOf(t, h.Process.Pid)) == 0 })
}

// A new worker leaves the tasks of a living worker alone.
func TestNextWorkerSparesTasksOfALivingOne(t *testing.T) {
	h := startHelper(t, Cgroup, "")
	newExecutor(t, Options{Mechanism: Cgroup})
	h.awaitAll(t)
	if gone(h.grandchild) {
		t.Error("its task has lost a process")
	}
}

func TestNestedCgroupsAreRemoved(t *testing.T) {
	e := newExecutor(t, Options{Mechanism: Cgroup})
	all := e.trees.(*cgroupFactory)
	mine := all.parent.Path + "/[0-9]*"
	if all.delegated {
		mine = filepath.Join(all.parent.Path, cgroup.FreeDir, "[0-9]*")
	}
	_, out, err := run(t, e, executor.Attempt{Env: map[string]string{"MINE": mine}}, `
		cd $MINE && mkdir -p inner/most || exit
		sh -c 'echo $$ > inner/most/cgroup.procs; exec sleep 100000' &
		while ! grep -q . inner/most/cgroup.procs; do sleep 0.01; done; echo moved`)
	if err != nil || out != "moved\n" {
		t.Fatalf("printed %q, error %v", out, err)
	}
	if left, _ := filepath.Glob(mine); len(left) > 0 {
		t.Errorf("cgroups left: %v", left)
	}
}
