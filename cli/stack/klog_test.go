package stack

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

// TestKubernetesClientLogsAtDebug writes an error with the client's own logger.
func TestKubernetesClientLogsAtDebug(t *testing.T) {
	for level, want := range map[slog.Level]string{slog.LevelInfo: "", slog.LevelDebug: "level=DEBUG"} {
		var out bytes.Buffer
		quietKubernetes(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})))
		klog.ErrorS(nil, "away")
		if text := out.String(); !strings.Contains(text, want) || want == "" && text != "" {
			t.Errorf("at level %v it wrote %q", level, text)
		}
	}
}
