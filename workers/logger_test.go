package workers

import (
	"bytes"
	"log/slog"
	"testing"
)

// TestQuietLogger makes the SDK log a failed activity and a panic. At the level of `run`, which logs warnings, only the
// panic appears.
func TestQuietLogger(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]string{
		slog.LevelWarn:  "level=WARN msg=\"Workflow panic\" a=1\n",
		slog.LevelInfo:  "level=INFO msg=\"Activity error.\" a=1 g.b=2\nlevel=WARN msg=\"Workflow panic\" a=1\n",
		slog.LevelDebug: "level=DEBUG msg=warning a=1\nlevel=INFO msg=\"Activity error.\" a=1 g.b=2\nlevel=WARN msg=\"Workflow panic\" a=1\n",
	} {
		var out bytes.Buffer
		l := quiet(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))).With("a", 1)
		l.Info("information")
		l.Warn("warning")
		l.WithGroup("g").Error("Activity error.", "b", 2)
		l.Error("Workflow panic")
		if got := out.String(); got != want {
			t.Errorf("at %v it logs\n%swant\n%s", level, got, want)
		}
	}
}
