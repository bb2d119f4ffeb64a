//go:build linux && engines

package qemu

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"switchyard/dev/testneeds"
)

func TestCancelledCallsLeaveNoMachineInAnotherState(t *testing.T) {
	t.Parallel()
	_, e, r := startTicking(t, ticksOn)
	r.awaitTicks(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Capture(cancelled, r.ID, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("the capture: %v", err)
	}
	r.awaitTicks(t)
	// QEMU pauses the machine in any case.
	if err := e.Pause(cancelled, r.ID); err != nil || !e.find(r.ID).isPaused() {
		t.Errorf("known as paused: %v, error %v", e.find(r.ID).isPaused(), err)
	}
	r.awaitSilence(t)
	if err := e.Resume(cancelled, r.ID); err != nil || e.find(r.ID).isPaused() {
		t.Errorf("known as paused: %v, error %v", e.find(r.ID).isPaused(), err)
	}
	r.awaitTicks(t)
}

// TestWorkerThatEndsDuringACaptureLeavesTheMachineRunning copies the disk with a program that never ends.
func TestWorkerThatEndsDuringACaptureLeavesTheMachineRunning(t *testing.T) {
	path, err := exec.LookPath(imagesName)
	if err != nil {
		testneeds.Missing(t, "%v", err)
	}
	programs := t.TempDir()
	copying := filepath.Join(programs, "copying")
	script := "#!/bin/sh\nif [ \"$1\" = convert ]; then : >" + copying + "; exec sleep 1000; fi\nexec " + path + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(programs, imagesName), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	dir, e, r := startTicking(t, ticksOn)
	captured := make(chan error, 1)
	go func() {
		_, err := e.Capture(context.WithoutCancel(t.Context()), r.ID, io.Discard)
		captured <- err
	}()
	testneeds.Await(t, "the disk is copied", func() bool { _, err := os.Stat(copying); return err == nil })
	r.letGo(t)
	if err := <-captured; err == nil {
		t.Error("the disk is captured")
	}
	e = newExecutor(t, dir)
	client := r.connectAlone(t, e)
	var answer struct{ Status string }
	if err := client.Execute(t.Context(), "query-status", nil, &answer); err != nil || answer.Status != stateRunning {
		t.Errorf("state %s without a worker, error %v", answer.Status, err)
	}
	_ = client.Close()
	r.reattach(t, e)
	r.awaitTicks(t)
}
