package config

import (
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// temporalVariables are Temporal's own variables for its address.
var temporalVariables = []string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"}

// Log logs the settings of a command with their origins. outside is whether the
// command uses a Temporal that runs elsewhere.
func (o Origins) Log(log *slog.Logger, cmd *cobra.Command, getenv func(string) string, outside bool) {
	var attrs []any
	add := func(name, value, origin string) {
		attrs = append(attrs, slog.String(name, masked(name, value)+" ("+origin+")"))
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		origin := o[f.Name]
		if origin == "" {
			origin = "default"
		}
		if f.Name != "help" {
			add(f.Name, f.Value.String(), origin)
		}
	})
	for _, name := range temporalVariables {
		if value := getenv(name); outside && value != "" {
			add(name, value, "environment")
		}
	}
	log.Info("settings of "+cmd.Name(), attrs...)
}
