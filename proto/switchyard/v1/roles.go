package switchyardv1

// Word returns the word by which people name a role, or "" if r is none.
func (r Role) Word() string {
	switch r {
	case Role_ROLE_VIEWER:
		return RoleViewer
	case Role_ROLE_USER:
		return RoleUser
	case Role_ROLE_OPERATOR:
		return RoleOperator
	case Role_ROLE_ADMIN:
		return RoleAdmin
	case Role_ROLE_NODE:
		return RoleNode
	}
	return ""
}

// ParseRole returns the role that a word names, or ROLE_UNSPECIFIED.
func ParseRole(word string) Role {
	for role := Role_ROLE_VIEWER; role <= Role_ROLE_NODE; role++ {
		if word == role.Word() {
			return role
		}
	}
	return Role_ROLE_UNSPECIFIED
}

// Includes reports whether whoever has role r may do what least asks for. The role of a node includes itself alone.
func (r Role) Includes(least Role) bool {
	if r == Role_ROLE_NODE || least == Role_ROLE_NODE || least == Role_ROLE_UNSPECIFIED {
		return r == least && r != Role_ROLE_UNSPECIFIED
	}
	return r >= least
}

// Roles returns the words of all roles, the weakest first, and that of nodes last.
func Roles() []string { return []string{RoleViewer, RoleUser, RoleOperator, RoleAdmin, RoleNode} }
