package shell

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"switchyard/activities/executor"
)

func limited(megabytes int64) executor.Attempt {
	return executor.Attempt{Limits: executor.Limits{Memory: megabytes << 20}}
}

func TestLogNamesAnUnenforcedLimit(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := newExecutor(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	e.bounds.inTree, e.bounds.unable = false, errors.New("no cgroups today")
	for range 2 {
		var said []string
		a := limited(32)
		a.Notify = func(line string) { said = append(said, line) }
		if r, out, err := run(t, e, a, "echo ran"); err != nil || out != "ran\n" || r.ExitCode != 0 {
			t.Errorf("%+v, %q, error %v", r, out, err)
		}
		if want := "the memory limit of 32 MiB is not enforced on this node: no cgroups today"; len(said) != 1 || said[0] != want {
			t.Errorf("was told %q, want %q", said, want)
		}
		a.Limits, said = executor.Limits{}, nil
		if _, _, err := run(t, e, a, "true"); err != nil || len(said) > 0 {
			t.Errorf("without a limit: %q, error %v", said, err)
		}
	}
	if n := strings.Count(log.String(), "not enforced"); n != 1 {
		t.Errorf("the worker's log says it %d times:\n%s", n, log.String())
	}
}
