package shell

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"switchyard/activities/executor/shell/cgroup"
	"switchyard/activities/executor/shell/procfs"
)

// mechanismsHere returns the mechanisms that work on this machine, best first.
// EnvMarker works on every Linux.
func mechanismsHere(t testing.TB) []Mechanism {
	t.Helper()
	all := []Mechanism{EnvMarker}
	c, err := newCgroups(nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Logf("no cgroups here, so they are not tested: %v", err)
		return all
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
	return append([]Mechanism{Cgroup}, all...)
}

// leftOf finds the processes with the marker of an attempt, without using the
// code under test.
func leftOf(t *testing.T, id string) []string {
	t.Helper()
	var left []string
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range environs {
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte("SWITCHYARD_CLAIM="+id+"\x00")) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			left = append(left, fmt.Sprintf("%s %q", filepath.Dir(path), line))
		}
	}
	return left
}

// leftovers returns an error if the tests have left anything behind.
func leftovers() error {
	// This process adopts those of killed helpers, and they may have died after the last executor was closed.
	procfs.Orphans.Open().Close()
	var err error
	out, _ := exec.Command("ps", "-o", "pid=,stat=,args=", "--ppid", strconv.Itoa(os.Getpid())).Output()
	for line := range bytes.Lines(out) {
		if !bytes.Contains(line, []byte("ps -o")) {
			err = errors.Join(err, fmt.Errorf("process left: %s", line))
		}
	}
	bases := newBounds(groupFactory{}).bases
	if base, e := cgroup.Own(); e == nil {
		bases["2"] = base
	}
	for _, base := range bases {
		dirs, _ := filepath.Glob(filepath.Join(base, fmt.Sprintf("%s%d-*", cgroup.ParentPrefix, os.Getpid())))
		if len(dirs) > 0 {
			err = errors.Join(err, fmt.Errorf("cgroups left: %v", dirs))
		}
	}
	return err
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	const patience = 2 * time.Minute
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
