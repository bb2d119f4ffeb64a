package config

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/spf13/cobra"
)

// TestLogOfSettings logs a setting from the command line and the defaults that are not empty.
func TestLogOfSettings(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelInfo: "level=INFO msg=\"settings of dev\" port=\"0 (--port)\" store=here token=***\n",
		slog.LevelWarn: "",
	} {
		cmd := &cobra.Command{Use: "dev"}
		cmd.Flags().Int("port", 7233, "")
		cmd.Flags().String("store", "here", "")
		cmd.Flags().String("token", "s3cret", "")
		cmd.Flags().String("empty", "", "")
		cmd.Flags().Int("max-parallel", 0, "")
		cmd.Flags().Duration("timeout", 0, "")
		if err := cmd.ParseFlags([]string{"--port", "0"}); err != nil {
			t.Fatal(err)
		}
		none := func(string) string { return "" }
		origins, err := Apply(cmd, none)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		origins.Log(log, cmd, none, true)
		if got := out.String(); got != want {
			t.Errorf("at %v it logs\n%swant\n%s", level, got, want)
		}
	}
}
