package workers

import (
	"fmt"
	"slices"
	"strings"
)

// Role says what part a control process takes.
type Role string

// Roles of a control process.
const (
	// RoleAuto stands by to own the placement queue; the default.
	RoleAuto Role = "auto"
	// RoleLeader is the same, but does not start when another process owns it.
	RoleLeader Role = "leader"
	// RoleWorker helps to keep the registry of nodes and never owns the placement queue.
	RoleWorker Role = "worker"
	// RoleObserver carries nothing at all: what it serves, it reads.
	RoleObserver Role = "observer"
)

// Roles are all roles, the default first.
var Roles = []Role{RoleAuto, RoleLeader, RoleWorker, RoleObserver}

// ParseRole reads a role; empty: the default.
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
