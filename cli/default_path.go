package cli

import (
	"os"
	"runtime"
)

// defaultPath is the search path of a process that was started without one, such as by `env -i`. It is that of systemd.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// setDefaultPath sets PATH unless the environment has it. Nodes find `sh`, their tools and the programs of tasks by it.
func setDefaultPath() {
	if runtime.GOOS != "windows" && os.Getenv("PATH") == "" {
		_ = os.Setenv("PATH", defaultPath) // fails only for an invalid name
	}
}
