package e2e

import (
	"errors"
	"os"
	"strings"
	"testing"

	"switchyard/dev/chaos/drill"
)

// TestFailure breaks a deployment in each of the ways of dev/chaos once, with
// short time-outs. At full length they are run by hand.
func TestFailure(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for time-outs")
	}
	t.Parallel()
	for _, scenario := range drill.Scenarios() {
		t.Run(scenario.Name, func(t *testing.T) {
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

// logged puts what a scenario measures into the log of its test.
type logged struct{ t *testing.T }

func (l logged) Write(line []byte) (int, error) {
	l.t.Log(strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}
