package workers

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// What the SDK calls an error is a warning here, and so on down.
func TestQuietLogger(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := quiet(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))).With("a", 1).WithGroup("g")
	l.Info("information")
	l.Warn("warning", "b", 2)
	l.Error("error")
	text := out.String()
	if strings.Contains(text, "information") || !strings.Contains(text, `level=INFO msg=warning a=1 g.b=2`) || !strings.Contains(text, "level=WARN msg=error") {
		t.Errorf("it says\n%s", text)
	}
}
