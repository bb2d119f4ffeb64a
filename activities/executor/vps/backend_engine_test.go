//go:build linux && engines

package vps_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/vps"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// scripted is a backend that records its calls.
type scripted struct {
	vps.Backend
	calls []string
	left  []executor.Leftover
	ended chan struct{}
}

func (s *scripted) note(call string) error {
	s.calls = append(s.calls, call)
	return nil
}

func (s *scripted) Run(_ context.Context, _ executor.Attempt, spawned func()) (executor.Result, error) {
	spawned()
	<-s.ended
	return executor.Result{}, s.note("run")
}
func (s *scripted) Reattach(context.Context, executor.Attempt) (executor.Result, error) {
	return executor.Result{}, s.note("reattach")
}
func (s *scripted) Survivors(context.Context, string) ([]executor.Leftover, error) {
	return s.left, nil
}
func (s *scripted) Remove(_ context.Context, l executor.Leftover) error {
	return s.note("remove " + l.ID)
}
func (s *scripted) Restart(context.Context, string) error { return s.note("restart") }
func (s *scripted) Pause(context.Context, string) error   { return s.note("pause") }
func (s *scripted) Resume(context.Context, string) error  { return s.note("resume") }
func (s *scripted) Enter(context.Context, string) (executor.Inside, error) {
	return nil, s.note("enter")
}

// The backend that the spec names runs, steers, enters and finds a machine, and no other backend does.
func TestMachineUsesTheBackendOfItsSpec(t *testing.T) {
	t.Parallel()
	virtual := &scripted{ended: make(chan struct{}), left: []executor.Leftover{{ID: "left", Running: true}}}
	_, c := newExecutor(t, containers.Options{})
	testneeds.Await(t, "the engine answers", func() bool { return c.Available() == nil })
	e := vps.New(c, virtual)
	a, _ := attempt(t, map[string]any{"backend": v1.BackendQEMU, "image": "", "vmImage": "/srv/a.qcow2"})
	started, done := make(chan struct{}), make(chan error)
	go func() {
		_, err := e.Run(t.Context(), a, func() { close(started) })
		done <- err
	}()
	<-started
	steer := func() []error {
		_, err := e.Enter(t.Context(), a.ID)
		return []error{e.Pause(t.Context(), a.ID), e.Resume(t.Context(), a.ID), e.Restart(t.Context(), a.ID), err}
	}
	if err := errors.Join(steer()...); err != nil {
		t.Error(err)
	}
	close(virtual.ended)
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, err := range steer() {
		if !errors.Is(err, executor.ErrNotRunning) {
			t.Errorf("error %v of a machine that has ended, want that it does not run", err)
		}
	}
	left, err := e.Survivors(t.Context(), "none")
	if err != nil || len(left) != 1 || left[0].ID != "left" {
		t.Errorf("survivors %v, error %v", left, err)
	}
	if _, err := e.Reattach(t.Context(), executor.Attempt{ID: "left", Spec: a.Spec}); err != nil {
		t.Error(err)
	}
	if err := e.Remove(t.Context(), executor.Leftover{ID: "left"}); err != nil {
		t.Error(err)
	}
	if want := []string{"enter", "pause", "resume", "restart", "run", "reattach", "remove left"}; !slices.Equal(virtual.calls, want) {
		t.Errorf("the backend was told %q, want %q", virtual.calls, want)
	}
}

// A node without QEMU is at fault, not the task.
func TestMissingQEMUIsReported(t *testing.T) {
	t.Parallel()
	e, _ := newExecutor(t, containers.Options{})
	a, _ := attempt(t, map[string]any{"backend": v1.BackendQEMU, "image": "", "vmImage": "/srv/a.qcow2"})
	_, err := e.Run(t.Context(), a, func() { t.Error("it has started") })
	if err == nil || executor.AsStartError(err) != nil || !strings.Contains(err.Error(), "cannot run virtual machines") {
		t.Errorf("error %v", err)
	}
}
