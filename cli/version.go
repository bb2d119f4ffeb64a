package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"switchyard/cli/output"
)

func newVersion(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and its main components",
		Args:  arguments(0, 0, ""),
	}
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = func(*cobra.Command, []string) error {
		info, ok := debug.ReadBuildInfo()
		if !ok {
			info = &debug.BuildInfo{}
		}
		if format.Value == output.JSON {
			return output.WriteJSON(sys.stdout, map[string]string{
				"switchyard": versionOf(info), "go": goVersion(info), "os": runtime.GOOS, "arch": runtime.GOARCH,
				"temporalSdk": dependency(info, "go.temporal.io/sdk"), "temporalServer": dependency(info, "go.temporal.io/server"),
			})
		}
		_, err := fmt.Fprint(sys.stdout, versions(info))
		return err
	}
	return cmd
}

func goVersion(info *debug.BuildInfo) string { return cmp.Or(info.GoVersion, runtime.Version()) }

// versions lists the versions of the program and of its main dependencies.
func versions(info *debug.BuildInfo) string {
	return fmt.Sprintf("switchyard       %s\nGo               %s %s/%s\nTemporal SDK     %s\nTemporal server  %s\n",
		versionOf(info), goVersion(info), runtime.GOOS, runtime.GOARCH,
		dependency(info, "go.temporal.io/sdk"), dependency(info, "go.temporal.io/server"))
}

// version returns the version of this program as one word.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	name := info.Main.Version
	if name == "" || name == "(devel)" {
		name = "devel"
		if revision := settings["vcs.revision"]; revision != "" {
			name += "-" + revision[:min(12, len(revision))]
		}
		if settings["vcs.modified"] == "true" {
			name += "+dirty"
		}
	}
	return name
}

func dependency(info *debug.BuildInfo, path string) string {
	for _, m := range info.Deps {
		if m.Path != path {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		return m.Version
	}
	return "unknown"
}
