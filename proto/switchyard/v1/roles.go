package switchyardv1

// roleWords has the word of each role.
var roleWords = map[Role]string{
	Role_ROLE_VIEWER: RoleViewer, Role_ROLE_USER: RoleUser, Role_ROLE_OPERATOR: RoleOperator, Role_ROLE_ADMIN: RoleAdmin, Role_ROLE_NODE: RoleNode,
}

// Word returns the word by which people name a role, or "" if r is none.
func (r Role) Word() string { return roleWords[r] }

// ParseRole returns the role that a word names, or ROLE_UNSPECIFIED.
func ParseRole(word string) Role {
	for role, name := range roleWords {
		if name == word {
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
