package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// taskVariables are flags whose plain variable every task finds in its
// environment with another meaning, so that they need another one.
var taskVariables = map[string]string{
	"output":   "SWITCHYARD_OUTPUT_FORMAT",
	"input":    "SWITCHYARD_RUN_INPUT",
	"attempt":  "SWITCHYARD_LOG_ATTEMPT",
	"task":     "SWITCHYARD_ONLY_TASK",
	"node":     "SWITCHYARD_ONLY_NODE",
	"workflow": "SWITCHYARD_RUN_WORKFLOW",
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	if name, ok := taskVariables[flag]; ok {
		return name
	}
	return "SWITCHYARD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets the flags of a command that were not given from the
// environment and notes that. An empty variable is as good as none.
func fromEnvironment(cmd *cobra.Command, sys *system) error {
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		text := sys.getenv(variable(f.Name))
		if err != nil || f.Changed || text == "" || f.Name == "help" || f.Name == "version" {
			return
		}
		var bad error
		if list, ok := f.Value.(pflag.SliceValue); ok {
			// As on the command line: values with commas in them, of the input, are not split there.
			separator := ","
			if f.Value.Type() == "stringArray" {
				separator = "\n"
			}
			bad = list.Replace(strings.Split(text, separator))
		} else {
			bad = f.Value.Set(text)
		}
		if bad != nil {
			err = usageError("%s: %q is no value for --%s: %w", variable(f.Name), text, f.Name, bad)
			return
		}
		sys.origins[f.Name] = variable(f.Name)
	})
	return err
}
