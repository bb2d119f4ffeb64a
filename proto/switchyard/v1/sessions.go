package switchyardv1

import "strings"

// MaxSessionID bounds the id of a session of an agent, in bytes: it is a part of the path of a socket.
const MaxSessionID = 64

// sessionPrefix begins the capability that a node has for each session.
const sessionPrefix = "session/"

// IsSessionID reports whether an id can name a session of an agent: letters, digits, '.', '_' and '-', with a letter or digit
// first.
func IsSessionID(id string) bool {
	if id == "" || len(id) > MaxSessionID {
		return false
	}
	for i, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// SessionCapability returns the capability, with the value "true", of the nodes that have a session.
func SessionCapability(id string) string { return sessionPrefix + id }

// SessionOfCapability returns the session that a capability is of, or false if it is of none.
func SessionOfCapability(key string) (id string, ok bool) {
	id, ok = strings.CutPrefix(key, sessionPrefix)
	return id, ok && IsSessionID(id)
}
