package cli

import (
	"log/slog"

	"github.com/spf13/cobra"

	"switchyard/cli/output"
)

// logFlag adds --log-level to a command that runs parts of the system.
func logFlag(cmd *cobra.Command, level string) *output.Choice {
	c := &output.Choice{Value: level, Allowed: []string{"debug", "info", "warn", "error"}}
	cmd.Flags().Var(c, "log-level", "lowest level to log on standard error")
	return c
}

// logger returns a logger that writes text to standard error.
func logger(sys *system, level *output.Choice) *slog.Logger {
	var least slog.Level
	// Every allowed word parses as a level.
	_ = least.UnmarshalText([]byte(level.Value))
	return slog.New(slog.NewTextHandler(sys.screen, &slog.HandlerOptions{Level: least}))
}
