package config

import (
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchyard/cli/exit"
)

// Flag is the name of the flag that names the configuration file.
const Flag = "config"

// ProfileFlag is the name of the flag that names a profile of the configuration file.
const ProfileFlag = "profile"

// Origins maps a flag to the source of its value: a flag, a variable, or a line of a file. Flags with their defaults
// are absent.
type Origins map[string]string

// Apply sets the flags that the command line leaves unset from the environment, or else from the configuration file. It
// returns the origins of all values.
func Apply(cmd *cobra.Command, getenv func(string) string) (Origins, error) {
	found := Origins{}
	cmd.Flags().Visit(func(f *pflag.Flag) { found[f.Name] = "--" + f.Name })
	if err := fromEnvironment(cmd, getenv, found); err != nil {
		return nil, err
	}
	path := ""
	if f := cmd.Flags().Lookup(Flag); f != nil {
		path = f.Value.String()
	}
	profile := ""
	if f := cmd.Flags().Lookup(ProfileFlag); f != nil {
		profile = f.Value.String()
	}
	if path == "" && profile != "" {
		return nil, exit.Usagef("--profile %s: there is no settings file; name one with --config or %s", profile, Variable(Flag))
	}
	if path == "" {
		return found, nil
	}
	file, err := readFile(path, cmd.Root())
	if err != nil {
		return nil, err
	}
	settings := file.lookup(file.settings, cmd)
	if plain, ok := settings[ProfileFlag]; ok && profile == "" {
		profile = plain.value.Value
	}
	if profile != "" {
		maps.Copy(settings, file.lookup(file.profile(profile), cmd))
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		f := cmd.Flags().Lookup(name)
		if f == nil || found[name] != "" {
			continue
		}
		if file.set(f, settings[name]) {
			found[name] = path + ":" + strconv.Itoa(settings[name].line)
		}
	}
	return found, file.err()
}
