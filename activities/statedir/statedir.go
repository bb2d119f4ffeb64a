package statedir

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
)

// Dir returns the folder: switchyard in $XDG_STATE_HOME if that is set, or else /var/lib/switchyard for root and
// .local/state/switchyard in the home folder of other users. On Windows it is in %LocalAppData%. The folder may not exist yet.
func Dir() (string, error) {
	// The XDG specification says to ignore a relative path.
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "switchyard"), nil
	}
	if runtime.GOOS == "windows" {
		local, err := os.UserCacheDir()
		return filepath.Join(local, "switchyard"), err
	}
	if os.Getuid() == 0 {
		return "/var/lib/switchyard", nil
	}
	home, err := homeDir()
	if err != nil {
		return "", fmt.Errorf("user %d has no home folder for the state of nodes; name a folder with XDG_STATE_HOME: %w", os.Getuid(), err)
	}
	return filepath.Join(home, ".local", "state", "switchyard"), nil
}

// homeDir returns the home folder of this user, also in a process without HOME.
func homeDir() (string, error) {
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return home, nil
	}
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(u.HomeDir) {
		return "", fmt.Errorf("the home folder of %s is %q", u.Username, u.HomeDir)
	}
	return u.HomeDir, nil
}
