package switchyardv1

import "strings"

// Kinds of environments, the values of Environment.kind.
const (
	EnvironmentImage = "image" // image of a container
	EnvironmentDisk  = "disk"  // disk of a virtual machine
)

// States of environments, the values of Environment.state.
const (
	EnvironmentCreating = "creating"
	EnvironmentReady    = "ready"
	EnvironmentFailed   = "failed"
)

// IsEnvironmentName reports whether name is a valid environment name: at most 63 of [a-z0-9._-], starting and ending with a
// letter or digit.
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
