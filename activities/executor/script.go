package executor

import "strings"

// ShellFlags are those with which sh runs a command that is a string. One of more than one line
// ends at the first command that fails, so that nothing is deployed after a cd that went wrong.
func ShellFlags(script string) string {
	if strings.Contains(strings.TrimSpace(script), "\n") {
		return "-ec"
	}
	return "-c"
}
