//go:build unix

package stack

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestScratchOwner runs in the process that TestSweepAfterAKill kills. It tests nothing itself.
func TestScratchOwner(t *testing.T) {
	parent := os.Getenv("SWITCHYARD_TEST_SCRATCH")
	if parent == "" {
		t.Skip("run by TestSweepAfterAKill")
	}
	s, err := newPrivateFolder(parent)
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(s.dir, "store", "logs"), 0o700))
	_, _ = os.Stdout.WriteString(s.dir + "\n")
	_, _ = os.Stdin.Read(make([]byte, 1)) // blocks until the process is killed
}

func age(t *testing.T, dir string) {
	t.Helper()
	old := time.Now().Add(-time.Minute)
	must(t, os.Chtimes(filepath.Join(dir, lockName), old, old))
}

// sweepOnce opens a folder, waits until its sweep has finished, and closes it.
func sweepOnce(t *testing.T, parent string) []string {
	t.Helper()
	s, err := newPrivateFolder(parent)
	must(t, err)
	s.removeAbandoned()
	s.removing.Wait()
	must(t, s.close())
	entries, err := os.ReadDir(parent)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestSweepAfterAKill(t *testing.T) {
	parent := t.TempDir()
	owner := exec.Command(os.Args[0], "-test.run=^TestScratchOwner$")
	owner.Env = append(os.Environ(), "SWITCHYARD_TEST_SCRATCH="+parent)
	stdin, err := owner.StdinPipe()
	must(t, err)
	defer stdin.Close()
	stdout, err := owner.StdoutPipe()
	must(t, err)
	must(t, owner.Start())
	lines := bufio.NewScanner(stdout)
	lines.Scan()
	dir := lines.Text()
	age(t, dir)
	if left := sweepOnce(t, parent); !slices.Equal(left, []string{filepath.Base(dir)}) {
		t.Errorf("%v is left while its process lives, want %s", left, dir)
	}
	must(t, owner.Process.Kill())
	_ = owner.Wait() // the process was killed
	if left := sweepOnce(t, parent); len(left) > 0 {
		t.Errorf("%v is left of a killed process", left)
	}
}

func TestSweepLeavesOthersAlone(t *testing.T) {
	parent := t.TempDir()
	folder := func(name, lock string) string {
		dir := filepath.Join(parent, name)
		must(t, os.Mkdir(dir, 0o700))
		if lock != "" {
			must(t, os.WriteFile(filepath.Join(dir, lock), nil, 0o600))
		}
		return dir
	}
	folder("switchyard-new", lockName)
	folder("switchyard-unlocked", "")
	age(t, folder("other", lockName))
	must(t, os.Symlink(filepath.Join(parent, "other"), filepath.Join(parent, "switchyard-link")))
	age(t, folder("switchyard-abandoned", lockName))
	want := []string{"other", "switchyard-link", "switchyard-new", "switchyard-unlocked"}
	if left := sweepOnce(t, parent); !slices.Equal(left, want) {
		t.Errorf("%v is left, want %v", left, want)
	}
}

// TestTemporaryFolderIsRemovedWithItsStack checks that the folder for temporary files is removed with the stack, and that a
// starting stack removes the folders of killed processes.
func TestTemporaryFolderIsRemovedWithItsStack(t *testing.T) {
	parent := t.TempDir()
	abandoned := filepath.Join(parent, "switchyard-abandoned")
	must(t, os.Mkdir(abandoned, 0o700))
	must(t, os.WriteFile(filepath.Join(abandoned, lockName), nil, 0o600))
	age(t, abandoned)
	s := &Stack{}
	if dir, err := s.openTempFolder(Config{Nodes: []NodeConfig{{}}}); dir != "" || err != nil || len(s.closers) > 0 {
		t.Errorf("without the setting: %q, %v", dir, err)
	}
	dir, err := s.openTempFolder(Config{Nodes: []NodeConfig{{LocalTempDir: parent}}, ExitFolders: &ExitFolders{}})
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(dir, "attempt-1"), 0o700))
	if filepath.Dir(filepath.Dir(dir)) != parent {
		t.Errorf("temporary files lie in %s", dir)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(abandoned); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("what a killed process has left is not swept")
		}
	}
	for _, c := range s.closers {
		must(t, c.stop())
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
