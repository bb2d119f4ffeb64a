//go:build linux && engines

package container

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container/enginetest"
)

// TestCommandThatTheEngineHasForgottenHasAnUnknownEnd checks that Exec reports an unknown status, rather than a failed
// start, for a command that ran but that its engine no longer knows, as after a restart of the engine.
func TestCommandThatTheEngineHasForgottenHasAnUnknownEnd(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	var forgotten atomic.Bool
	e := newFor(t, Options{Host: changedEngine(t, docker, func(r *http.Response) error {
		if path := r.Request.URL.Path; forgotten.Load() && strings.Contains(path, "/exec/") && strings.HasSuffix(path, "/json") {
			r.StatusCode, r.Status = http.StatusNotFound, "404 Not Found"
		}
		return nil
	})})
	in, err := e.Enter(t.Context(), beginLasting(t, e))
	if err != nil {
		t.Fatal(err)
	}
	forgets := writes(func() { forgotten.Store(true) })
	status, err := in.Exec(t.Context(), executor.Command{Args: []string{"echo", "running"}, Stdout: forgets})
	if err == nil || status.Code != executor.CodeUnknown {
		t.Errorf("%+v, %v; want %d and an error", status, err, executor.CodeUnknown)
	}
}
