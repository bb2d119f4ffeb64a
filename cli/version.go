package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"switchyard/cli/output"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// release and commit are set by dev/release.sh, through flags of the linker. They are empty in any other build.
var release, commit string

func newVersion(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and its main components",
		Long: `Prints the versions of this program and its main components, and the highest data level that
the program understands: it refuses a store with a higher one.`,
		Args: arguments(0, 0, ""),
	}
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = func(*cobra.Command, []string) error {
		info, ok := debug.ReadBuildInfo()
		if !ok {
			info = &debug.BuildInfo{}
		}
		if format.Value == output.JSON {
			return output.WriteJSON(sys.stdout, map[string]any{
				"switchyard": versionOf(info), "commit": commitOf(info), "go": goVersion(info), "os": runtime.GOOS, "arch": runtime.GOARCH,
				"temporalSdk": dependency(info, "go.temporal.io/sdk"), "temporalServer": dependency(info, "go.temporal.io/server"),
				"dataLevel": historyv1.ReadableDataLevel(),
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
	return fmt.Sprintf("switchyard       %s\ncommit           %s\nGo               %s %s/%s\nTemporal SDK     %s\nTemporal server  %s\ndata level       %d\n",
		versionOf(info), commitOf(info), goVersion(info), runtime.GOOS, runtime.GOARCH,
		dependency(info, "go.temporal.io/sdk"), dependency(info, "go.temporal.io/server"), historyv1.ReadableDataLevel())
}

// version returns the version of this program as one word.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info)
}

// versionOf returns the version that the release script has set, or else that of the build.
func versionOf(info *debug.BuildInfo) string {
	switch {
	case release != "":
		return release
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	name := "devel"
	if revision := setting(info, "vcs.revision"); revision != "" {
		name += "-" + revision[:min(12, len(revision))]
	}
	if setting(info, "vcs.modified") == "true" {
		name += "+dirty"
	}
	return name
}

// commitOf returns the commit from which the program was built, or "unknown".
func commitOf(info *debug.BuildInfo) string {
	return cmp.Or(commit, setting(info, "vcs.revision"), "unknown")
}

// setting returns a setting of the build, or "".
func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
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
