//go:build unix

package node

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeProgram adds a shell script with the given name in front of PATH.
func fakeProgram(t *testing.T, name, script string) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestSystemCommand(t *testing.T) {
	run := systemCommand(50 * time.Millisecond)
	fakeProgram(t, "nvidia-smi", `[ "$LC_ALL" = C ] && [ "$2" = --format=csv,noheader,nounits ] && echo '`+strings.TrimSpace(oneGPU)+`'`)
	gpus, err := readGPUs(t.Context(), run, os.DirFS("/sys"))
	if err != nil || len(gpus) != 1 || gpus[0].GetName() != "NVIDIA L4" {
		t.Errorf("got %v, %v", gpus, err)
	}
	fakeProgram(t, "nvidia-smi", "echo 'NVIDIA-SMI has failed because it could not reach the driver'; exit 9")
	if _, err := readGPUs(t.Context(), run, nil); err == nil || !strings.Contains(err.Error(), "could not reach the driver") {
		t.Errorf("got %v, want what nvidia-smi says", err)
	}
	// A child process that keeps the output open must not block the reading.
	pidFile := filepath.Join(t.TempDir(), "pid")
	ended := filepath.Join(t.TempDir(), "ended")
	fakeProgram(t, "nvidia-smi", "(i=0; while [ $i -lt 300 ]; do sleep 1; i=$((i+1)); done; : >"+ended+") & echo $! >"+pidFile+".new; mv "+pidFile+".new "+pidFile+"; exec sleep 600")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pid := make(chan int, 1)
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if b, err := os.ReadFile(pidFile); err == nil {
				n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
				pid <- n
				return
			}
			time.Sleep(time.Millisecond)
		}
		pid <- 0
	}()
	if _, err := readGPUs(ctx, run, nil); err == nil {
		t.Error("no error although it was killed")
	}
	if child := <-pid; child <= 0 {
		t.Error("it did not start")
	} else {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	if _, err := os.Stat(ended); err == nil {
		t.Error("we waited for its child")
	}
	t.Setenv("PATH", t.TempDir())
	if gpus, err := readGPUs(t.Context(), run, nil); err != nil || len(gpus) > 0 {
		t.Errorf("without nvidia-smi: %v, %v", gpus, err)
	}
	if _, err := run(t.Context(), "nvidia-smi"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
