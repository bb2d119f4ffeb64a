package filelock

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// holdEnv names a lock file. If it is set, the test binary takes the lock, reports that, and holds
// the lock until its standard input ends.
const holdEnv = "FILELOCK_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdEnv); path != "" {
		lock, err := Take(path)
		if err != nil {
			os.Exit(1)
		}
		lock.SetNote("the other")
		os.Stdout.WriteString("held\n")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestTakeAndRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	lock, err := Take(path)
	if err != nil {
		t.Fatal(err)
	}
	// Garbage collection must not release the lock, as it would if an os.File held it.
	runtime.GC()
	for range 2 { // a refusal leaves nothing behind
		_, err = Take(path)
		if held, ok := errors.AsType[*HeldError](err); !ok || held.PID != os.Getpid() || held.Path != path {
			t.Fatalf("second Take: %v", err)
		}
	}
	for range 2 {
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	}
	again, err := Take(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != permissions {
		t.Errorf("lock file: %v %v", info, err)
	}
}

func TestRemove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	for range 2 {
		lock, err := Take(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := lock.Remove(); err != nil {
				t.Error(err)
			}
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is there: %v", err)
		}
	}
}

// TestOneAtATime checks that only one caller holds the lock while many take, release and remove it
// concurrently.
func TestOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	var holders, taken atomic.Int32
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for mine := 0; mine < 50; {
				lock, err := Take(path)
				if _, held := errors.AsType[*HeldError](err); held {
					runtime.Gosched()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if holders.Add(1) != 1 {
					t.Error("two have the lock")
				}
				mine++
				taken.Add(1)
				holders.Add(-1)
				give := lock.Release
				if i%2 == 0 {
					give = lock.Remove
				}
				if err := give(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if taken.Load() != 4*50 {
		t.Errorf("taken %d times", taken.Load())
	}
}

// TestLockOfAnotherProcess checks that the error names the process that holds the lock, that
// killing that process releases the lock, and that its note stays until the next one is set.
func TestLockOfAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	_, err = Take(path)
	if held, ok := errors.AsType[*HeldError](err); !ok || held.PID != cmd.Process.Pid {
		t.Errorf("got %v, want the lock of process %d", err, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, note := range []string{"the other", "", ""} {
		lock, err := Take(path)
		if err != nil {
			t.Fatal(err)
		}
		if lock.Note() != note {
			t.Errorf("the note is %q, want %q", lock.Note(), note)
		}
		lock.SetNote("")
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
	}
}

func TestTakeRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Take(filepath.Join(dir, "nowhere", "a.lock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(link); err == nil {
		t.Error("a symbolic link was followed")
	}
	if _, err := os.Stat(filepath.Join(dir, "elsewhere")); err == nil {
		t.Error("a file was made through a symbolic link")
	}
}
