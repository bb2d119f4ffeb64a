package shell

import (
	"log/slog"
	"testing"
)

// The strays do not include an attempt whose id is in use again.
func TestStraysExcludeRestartedAttempts(t *testing.T) {
	s := newStrays(slog.New(slog.DiscardHandler))
	s.noteEnd("again")
	s.noteEnd("over")
	s.noteBegin("again")
	if s.ended["again"] || !s.ended["over"] {
		t.Errorf("ended are %v", s.ended)
	}
	s.close()
	if len(s.ended) > 0 || s.timer != nil {
		t.Error("nothing was looked for")
	}
}
