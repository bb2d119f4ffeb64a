package cli

import (
	"fmt"
	"os"
	"path/filepath"
)

const storeUsage = "folder or URL of logs and results, the same for all parts of a deployment (default one in your data directory)"

// storeOr is the store that was named, or the one in the user's data directory.
func storeOr(named string, getenv func(string) string) (string, error) {
	if named != "" {
		return named, nil
	}
	// The specification says that a relative path is to be ignored.
	if data := getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "switchyard", "store"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", &failure{code: exitUsage, err: fmt.Errorf("there is no data directory for the store: %w", err), hint: "name a folder with --store"}
	}
	return filepath.Join(home, ".local", "share", "switchyard", "store"), nil
}
