package switchyardv1

import (
	"cmp"
	"slices"
	"strings"
)

// MaxSessionID is the maximum length of an agent session's id in bytes. The id is part of the path of a socket.
const MaxSessionID = 64

// sessionPrefix is the prefix of the capability that a node has for each agent session.
const sessionPrefix = "session/"

// IsSessionID reports whether id is a valid agent session id: at most MaxSessionID letters, digits, '.', '_' and '-',
// starting with a letter or digit.
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

// SessionCapability returns the capability, with the value "true", of the nodes that have an agent session.
func SessionCapability(id string) string { return sessionPrefix + id }

// AgentSession is a session of an agent on a node.
type AgentSession struct {
	Session string `json:"session"`
	Node    string `json:"node"`
	State   string `json:"state"` // state of the node
}

// SessionsOf returns the agent sessions on nodes, sorted by name and node.
func SessionsOf(nodes []*Node) []AgentSession {
	var sessions []AgentSession
	for _, n := range nodes {
		for key := range n.GetCapabilities() {
			if id, ok := SessionOfCapability(key); ok {
				sessions = append(sessions, AgentSession{Session: id, Node: n.GetName(), State: n.GetState()})
			}
		}
	}
	slices.SortFunc(sessions, func(a, b AgentSession) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Node, b.Node))
	})
	return sessions
}

// SessionOfCapability returns the session of a capability, the inverse of SessionCapability. ok is false for the capability of anything else.
func SessionOfCapability(key string) (id string, ok bool) {
	id, ok = strings.CutPrefix(key, sessionPrefix)
	return id, ok && IsSessionID(id)
}
