package e2e

import (
	"strings"
	"testing"

	"switchyard/dev/chaos/drill"
)

// TestDeadWorkerLosesNothing kills the worker of a deployment of real processes, with short time-outs. The other
// scenarios of dev/chaos are long tests.
func TestDeadWorkerLosesNothing(t *testing.T) {
	t.Parallel()
	runDrill(t, "kill-worker")
}

// runDrill runs the scenario with the given name.
func runDrill(t *testing.T, name string) {
	t.Helper()
	scenario, err := drill.ScenarioNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := scenario.Run(t.Context(), drill.Options{Binary: binary, Dir: t.TempDir(), Scale: drill.Fast, Report: logged{t}}); err != nil {
		t.Errorf("%s: %v", scenario.Says, err)
	}
}

// logged writes the measurements of a scenario to the log of its test.
type logged struct{ t *testing.T }

func (l logged) Write(line []byte) (int, error) {
	l.t.Log(strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}
