package workers

import (
	"fmt"
	"slices"
	"strings"
)

// Role is the role of a control process.
type Role string

// The roles of a control process.
const (
	// RoleAuto stands by to own the placement queue. It is the default.
	RoleAuto Role = "auto"
	// RoleLeader is like RoleAuto, but does not start if another process owns the queue.
	RoleLeader Role = "leader"
	// RoleWorker helps to keep the registry of nodes and never becomes the leader.
	RoleWorker Role = "worker"
	// RoleObserver carries no work. It only reads.
	RoleObserver Role = "observer"
)

// Roles lists all roles, the default first.
var Roles = []Role{RoleAuto, RoleLeader, RoleWorker, RoleObserver}

// ParseRole parses a role. "" means the default.
func ParseRole(text string) (Role, error) {
	if text == "" {
		return RoleAuto, nil
	}
	if !slices.Contains(Roles, Role(text)) {
		var known []string
		for _, r := range Roles {
			known = append(known, string(r))
		}
		return "", fmt.Errorf("role %q: use one of %s", text, strings.Join(known, ", "))
	}
	return Role(text), nil
}

// candidate reports whether a process of this role may own the placement queue.
func (r Role) candidate() bool { return r == RoleAuto || r == RoleLeader }
