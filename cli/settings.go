package cli

import (
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// configFlag names the configuration file.
const configFlag = "config"

// settle sets the flags of a command that were not given from the environment,
// and those that are not there either from the configuration file. It notes in
// the system where each came from.
func settle(cmd *cobra.Command, sys *system) error {
	sys.origins = map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) { sys.origins[f.Name] = "--" + f.Name })
	if err := fromEnvironment(cmd, sys); err != nil {
		return err
	}
	path := ""
	if f := cmd.Flags().Lookup(configFlag); f != nil {
		path = f.Value.String()
	}
	if path == "" {
		return nil
	}
	file, err := readConfig(path, cmd.Root())
	if err != nil {
		return err
	}
	settings := file.lookup(cmd)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		f := cmd.Flags().Lookup(name)
		if f == nil || sys.origins[name] != "" {
			continue
		}
		if file.set(f, settings[name]) {
			sys.origins[name] = path + ":" + strconv.Itoa(settings[name].line)
		}
	}
	return file.err()
}

// temporalVariables are the settings of Temporal's own that say where it is.
var temporalVariables = []string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"}

// logSettings logs what a command has been set to and where that came from.
// outside says that it uses a Temporal that is there.
func logSettings(log *slog.Logger, cmd *cobra.Command, sys *system, outside bool) {
	var attrs []any
	add := func(name, value, origin string) {
		attrs = append(attrs, slog.String(name, masked(name, value)+" ("+origin+")"))
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		origin := sys.origins[f.Name]
		if origin == "" {
			origin = "default"
		}
		if f.Name != "help" {
			add(f.Name, f.Value.String(), origin)
		}
	})
	for _, name := range temporalVariables {
		if value := sys.getenv(name); outside && value != "" {
			add(name, value, "environment")
		}
	}
	log.Info("settings of "+cmd.Name(), attrs...)
}

const mask = "***"

// masked is a value as it may be logged: without secrets, be they a setting by
// itself or a part of a URL.
func masked(name, value string) string {
	if value == "" {
		return value
	}
	if secret(name) {
		return mask
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme == "" {
		return value
	}
	changed := false
	if _, set := u.User.Password(); set {
		u.User, changed = url.UserPassword(u.User.Username(), mask), true
	}
	query := u.Query()
	for key := range query {
		if secret(key) {
			query.Set(key, mask)
			changed = true
		}
	}
	if !changed {
		return value
	}
	u.RawQuery = query.Encode()
	return strings.ReplaceAll(u.String(), url.QueryEscape(mask), mask)
}

// secret says that what has such a name is not for everybody.
func secret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"token", "secret", "password", "credential", "key"}, func(word string) bool { return strings.Contains(name, word) })
}

func sorted(words []string) []string { return slices.Sorted(slices.Values(words)) }
