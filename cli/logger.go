package cli

import (
	"log/slog"

	"github.com/spf13/cobra"
)

// logFlag adds --log-level to a command that runs parts of the system.
func logFlag(cmd *cobra.Command, level string) *choice {
	c := &choice{value: level, allowed: []string{"debug", "info", "warn", "error"}}
	cmd.Flags().Var(c, "log-level", "what to log on standard error")
	return c
}

// logger logs as text on standard error.
func logger(sys *system, level *choice) *slog.Logger {
	var least slog.Level
	// A word that is allowed is a level.
	_ = least.UnmarshalText([]byte(level.value))
	return slog.New(slog.NewTextHandler(sys.screen, &slog.HandlerOptions{Level: least}))
}
