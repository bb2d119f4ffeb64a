package switchyardv1

// Word returns the name of a role for people, or "" if r is not a role.
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

// ParseRole parses the result of Word. It returns ROLE_UNSPECIFIED for any other word.
func ParseRole(word string) Role {
	for role := Role_ROLE_VIEWER; role <= Role_ROLE_NODE; role++ {
		if word == role.Word() {
			return role
		}
	}
	return Role_ROLE_UNSPECIFIED
}

// Includes reports whether role r permits everything that role least permits. The role of nodes includes only
// itself.
func (r Role) Includes(least Role) bool {
	if r == Role_ROLE_NODE || least == Role_ROLE_NODE || least == Role_ROLE_UNSPECIFIED {
		return r == least && r != Role_ROLE_UNSPECIFIED
	}
	return r >= least
}

// Roles returns the names of all roles, the weakest first and the role of nodes last.
func Roles() []string { return []string{RoleViewer, RoleUser, RoleOperator, RoleAdmin, RoleNode} }
