package switchyardv1

import "strings"

// Kinds of environments: Environment.kind.
const (
	EnvironmentImage = "image" // of a container
	EnvironmentDisk  = "disk"  // of a virtual machine
)

// States of environments: Environment.state.
const (
	EnvironmentCreating = "creating"
	EnvironmentReady    = "ready"
	EnvironmentFailed   = "failed"
)

// IsEnvironmentName reports whether a name can be that of an environment: at most 63 of [a-z0-9._-], the first and the last a letter
// or digit.
func IsEnvironmentName(name string) bool {
	isAlphanumeric := func(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
	if name == "" || len(name) > 63 || !isAlphanumeric(name[0]) || !isAlphanumeric(name[len(name)-1]) {
		return false
	}
	for i := range len(name) {
		if !isAlphanumeric(name[i]) && !strings.ContainsRune("._-", rune(name[i])) {
			return false
		}
	}
	return true
}
