//go:build linux && engines

package container_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/container/enginetest"
)

// processesIn returns the processes of an attempt's container, with the PIDs of
// this machine.
func processesIn(t *testing.T, engine *enginetest.Private, a executor.Attempt) []int {
	t.Helper()
	top, err := engine.Docker.ContainerTop(t.Context(), containers.Name(a.Identity), []string{"-eo", "pid"})
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, row := range top.Processes {
		pid, err := strconv.Atoi(strings.TrimSpace(row[0]))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// anyAlive reports whether any of some processes is still running.
func anyAlive(pids []int) bool {
	for _, pid := range pids {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
}

// makeTemp turns a directory into a workspace.
func makeTemp(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
}
