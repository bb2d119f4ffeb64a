package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
)

func TestPutIfAbsentOfManyHasOneWinner(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		for round := range int32(20) {
			key := storekey.Result("ci-0k", 0, "build", round)
			var winner atomic.Int32
			var writers sync.WaitGroup
			for i := range int32(8) {
				writers.Go(func() {
					existed, err := s.PutIfAbsent(t.Context(), key, []byte(strings.Repeat(strconv.Itoa(int(i)), 5000)))
					if err != nil {
						t.Error(err)
					}
					if !existed && !winner.CompareAndSwap(0, i+1) {
						t.Errorf("writers %d and %d were both the first", winner.Load()-1, i)
					}
				})
			}
			writers.Wait()
			got, err := s.Get(t.Context(), key)
			if want := strings.Repeat(strconv.Itoa(int(winner.Load())-1), 5000); err != nil || string(got) != want {
				t.Fatalf("the value is of writer %.1s, %v; want %.1s", got, err, want)
			}
		}
	})
}

// racerEnv turns the test binary into a process that writes to a folder.
const racerEnv = "STORE_TEST_RACER"

// race writes values under the keys 0 to 99, prints for which of them it was the first, and waits to be killed.
func race(dir, name string) error {
	s, err := store.Open(context.Background(), dir)
	if err != nil {
		return err
	}
	for i := range int32(100) {
		existed, err := s.PutIfAbsent(context.Background(), storekey.Result("ci-0k", 0, "t", i), []byte(name))
		if err != nil {
			return err
		}
		if !existed {
			fmt.Println(i)
		}
	}
	return s.Close()
}

func TestPutIfAbsentOfProcessesHasOneWinner(t *testing.T) {
	dir := t.TempDir()
	const racers = 4
	outputs := make([]strings.Builder, racers)
	var processes []*exec.Cmd
	for i := range racers {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), racerEnv+"="+dir+"\n"+strconv.Itoa(i))
		cmd.Stdout, cmd.Stderr = &outputs[i], os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, cmd)
	}
	for _, cmd := range processes {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir)
	won := 0
	for i := range outputs {
		for number := range strings.Lines(outputs[i].String()) {
			won++
			n, _ := strconv.Atoi(strings.TrimSpace(number))
			if got, err := s.Get(t.Context(), storekey.Result("ci-0k", 0, "t", int32(n))); err != nil || string(got) != strconv.Itoa(i) {
				t.Errorf("process %d was the first for %d, and the value is of %s, %v", i, n, got, err)
			}
		}
	}
	if won != 100 {
		t.Errorf("%d processes were the first of 100 keys", won)
	}
	if n := len(keysOf(t, s, "")); n != 100 {
		t.Errorf("%d keys", n)
	}
}

func TestPutIfAbsentLeavesNoOtherFile(t *testing.T) {
	large := []byte(strings.Repeat("x", 5000))
	for name, test := range map[string]struct {
		open  func(testing.TB, string) *store.Store
		value []byte
		want  string
	}{
		"small":  {open, []byte("x"), `^~journal$`},
		"large":  {open, large, `^(~journal|status|status/0~[0-9a-f]{16})$`},
		"linked": {openShared, large, `^(status|status/0)$`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := test.open(t, dir)
			for range 2 {
				if _, err := s.PutIfAbsent(t.Context(), storekey.Status("ci-0k", 0), test.value); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := s.PutIfAbsent(ctx, storekey.Status("ci-0k", 1), test.value); !errors.Is(err, context.Canceled) {
				t.Errorf("with a context that has ended: %v", err)
			}
			if files := filesOf(t, filepath.Join(dir, "runs", "ci-0k")); len(files) != strings.Count(test.want, "|")+1 {
				t.Errorf("files %q", files)
			} else {
				for _, file := range files {
					if !regexp.MustCompile(test.want).MatchString(file) {
						t.Errorf("there is a file %q", file)
					}
				}
			}
		})
	}
}

// filesOf returns the names of all files and directories below dir.
func filesOf(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			name, _ := filepath.Rel(dir, path)
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
