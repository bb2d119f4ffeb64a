package config

import (
	"context"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// temporalVariables are Temporal's own variables for its address.
var temporalVariables = []string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"}

// unsetValues are the defaults that say nothing: without a value, or with one that stands for something else, as 0 does for no limit.
var unsetValues = []string{"", "[]", "0", "0s"}

// Log logs in one line the settings that are in force for a command: those that a user has changed with their origins, then the
// defaults of the others, except for unsetValues. outside is true if the command uses a Temporal server that runs elsewhere.
func (o Origins) Log(log *slog.Logger, cmd *cobra.Command, getenv func(string) string, outside bool) {
	var made, defaults []slog.Attr
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch origin := o[f.Name]; {
		case f.Name == "help":
		case origin == "" && slices.Contains(unsetValues, f.Value.String()):
		case origin == "":
			defaults = append(defaults, slog.String(f.Name, masked(f.Name, f.Value.String())))
		default:
			made = append(made, slog.String(f.Name, masked(f.Name, f.Value.String())+" ("+origin+")"))
		}
	})
	for _, name := range temporalVariables {
		if value := getenv(name); outside && value != "" {
			made = append(made, slog.String(name, masked(name, value)+" (environment)"))
		}
	}
	log.LogAttrs(context.Background(), slog.LevelInfo, "settings of "+cmd.Name(), append(made, defaults...)...)
}
