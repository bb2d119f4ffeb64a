package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"switchyard/cli/config"
)

// TestPackagedSettingsExist checks that each setting in the files that packages install is one of its command, also those
// behind a comment sign, and that each command accepts the files as they are installed.
func TestPackagedSettingsExist(t *testing.T) {
	offered := regexp.MustCompile(`(?m)^#([a-zA-Z]+:)`)
	for _, name := range []string{"gateway", "worker"} {
		text, err := os.ReadFile(filepath.Join("../dev/release/files", name+".yaml"))
		must(t, err)
		file := write(t, name+".yaml", string(offered.ReplaceAll(text, []byte("$1"))))
		cmd, _, err := Commands().Find([]string{name})
		must(t, err)
		must(t, cmd.ParseFlags([]string{"--config", file}))
		if _, err := config.Apply(cmd, func(string) string { return "" }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, found := range regexp.MustCompile(`(?m)^#?([a-zA-Z]+):`).FindAllSubmatch(text, -1) {
			if flag := kebab(string(found[1])); cmd.Flags().Lookup(flag) == nil {
				t.Errorf("%s.yaml: %s is no flag of %s", name, flag, name)
			}
		}
	}
}

// kebab returns the flag of a setting in camelCase.
func kebab(key string) string {
	return string(regexp.MustCompile(`[A-Z]`).ReplaceAllFunc([]byte(key), func(upper []byte) []byte {
		return []byte{'-', upper[0] + 'a' - 'A'}
	}))
}
