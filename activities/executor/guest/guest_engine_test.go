//go:build linux && engines

package guest_test

import (
	"testing"

	"switchyard/activities/executor"
	"switchyard/activities/executor/executortest"
)

func TestInsideConformance(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) *machine{
		"openssh":  func(t *testing.T) *machine { return newOpenSSH(t) },
		"dropbear": newDropbear,
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t).enter(t)
			dir := t.TempDir()
			executortest.RunInside(t, executortest.InsideHarness{
				Enter: func(*testing.T) executor.Inside { return g },
				Dir:   func(*testing.T) string { return dir },
				Env:   [2]string{"GREETING", "hello"}, NoHardLinks: true, OpensDevices: true,
			})
		})
	}
}
