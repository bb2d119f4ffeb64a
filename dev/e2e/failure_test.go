package e2e

import (
	"errors"
	"os"
	"strings"
	"testing"

	"switchyard/dev/chaos/drill"
	"switchyard/dev/testneeds"
)

// TestFailure breaks a deployment in the most common ways, with short time-outs.
func TestFailure(t *testing.T) {
	t.Parallel()
	drills(t, "kill-worker", "kill-gateway", "kill-server")
}

// TestLongFailure runs each scenario of dev/chaos once, with short time-outs. The full-length scenarios are run by
// hand.
func TestLongFailure(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	var all []string
	for _, scenario := range drill.Scenarios() {
		all = append(all, scenario.Name)
	}
	drills(t, all...)
}

// drills runs the scenarios with the given names.
func drills(t *testing.T, names ...string) {
	for _, name := range names {
		scenario, err := drill.ScenarioNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := scenario.Run(t.Context(), drill.Options{Binary: binary, Dir: t.TempDir(), Scale: drill.Fast, Report: logged{t}})
			if (errors.Is(err, drill.ErrNoEngine) || errors.Is(err, drill.ErrNoMounts)) && os.Getenv("CI") == "" {
				t.Skip(err)
			}
			if err != nil {
				t.Errorf("%s: %v", scenario.Says, err)
			}
		})
	}
}

// logged writes the measurements of a scenario to the log of its test.
type logged struct{ t *testing.T }

func (l logged) Write(line []byte) (int, error) {
	l.t.Log(strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}
