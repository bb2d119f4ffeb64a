package executor

import "strings"

// ShellFlags returns the flags with which sh runs a command string. A script of several lines stops
// at the first command that fails, so that nothing is deployed after a failed cd.
func ShellFlags(script string) string {
	if strings.Contains(strings.TrimSpace(script), "\n") {
		return "-ec"
	}
	return "-c"
}
