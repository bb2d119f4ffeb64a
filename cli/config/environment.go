package config

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchyard/cli/exit"
)

// taskVariables maps flags to their variables where the usual variable has another meaning in the environment of every
// task.
var taskVariables = map[string]string{
	"output":   "SWITCHYARD_OUTPUT_FORMAT",
	"input":    "SWITCHYARD_RUN_INPUT",
	"attempt":  "SWITCHYARD_LOG_ATTEMPT",
	"task":     "SWITCHYARD_ONLY_TASK",
	"node":     "SWITCHYARD_ONLY_NODE",
	"workflow": "SWITCHYARD_RUN_WORKFLOW",
}

// Variable returns the environment variable of a flag.
func Variable(flag string) string {
	if name, ok := taskVariables[flag]; ok {
		return name
	}
	return "SWITCHYARD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets the flags that the command line did not set from the environment, and adds their origins to
// found. An empty variable counts as unset.
func fromEnvironment(cmd *cobra.Command, getenv func(string) string, found Origins) error {
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		text := getenv(Variable(f.Name))
		if err != nil || f.Changed || text == "" || f.Name == "help" || f.Name == "version" {
			return
		}
		var bad error
		if list, ok := f.Value.(pflag.SliceValue); ok {
			// As on the command line, commas do not split values of --input.
			separator := ","
			if f.Value.Type() == "stringArray" {
				separator = "\n"
			}
			bad = list.Replace(strings.Split(text, separator))
		} else {
			bad = f.Value.Set(text)
		}
		if bad != nil {
			err = exit.Usagef("%s: %q is not a valid value for --%s: %w", Variable(f.Name), text, f.Name, bad)
			return
		}
		found[f.Name] = Variable(f.Name)
	})
	return err
}
