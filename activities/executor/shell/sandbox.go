package shell

import (
	"slices"
	"strings"
)

// sandboxHome is the home directory of a program in a sandbox, which nobody else sees.
const sandboxHome = "/tmp"

// sandboxed is what a program in a sandbox gets of the node's environment: how to find
// programs, and how to write. The rest may hold what only the worker is to know.
func sandboxed(node []string) []string {
	kept := slices.DeleteFunc(slices.Clone(node), func(entry string) bool {
		key, _, _ := strings.Cut(entry, "=")
		return key != "PATH" && key != "LANG" && key != "LANGUAGE" && key != "TZ" && !strings.HasPrefix(key, "LC_")
	})
	return append(kept, "HOME="+sandboxHome)
}
