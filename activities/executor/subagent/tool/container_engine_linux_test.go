//go:build engines

package tool

import (
	"strings"
	"testing"

	"switchyard/activities/executor/container"
	"switchyard/activities/executor/container/enginetest"
)

// newContainedAgent returns an agent whose commands run in containers.
func newContainedAgent(t *testing.T, change func(*ShellOptions)) *agent {
	t.Helper()
	image := enginetest.Image(t)
	e, err := container.New(container.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return newAgent(t, func(o *ShellOptions) {
		o.Container, o.Image = e, image
		if change != nil {
			change(o)
		}
	})
}

// An unusable image is detected before the first request to the model.
func TestMissingImageIsRefusedBeforeTheAgentStarts(t *testing.T) {
	name := enginetest.Registry(t, nil) + "/no-such-image:1"
	a := newContainedAgent(t, func(o *ShellOptions) { o.Image = name })
	err := a.shell.Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("error %v", err)
	}
}
