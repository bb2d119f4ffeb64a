package mcptool

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// maxName is the longest tool name that providers accept.
	maxName = 64
	// suffixLength is the length of the suffix that makes a name unique: "_" and a part of a hash.
	suffixLength = 9
)

// toolNames is the set of names in use.
type toolNames map[string]bool

// unique returns a unique name for a tool of a server. A plain name omits the server. The result depends only on the
// two names and on whether an earlier tool has the same name, so that an attempt that continues a conversation finds
// the same names.
func (n toolNames) unique(server, tool string, plain bool) string {
	name := cleanName(tool)
	if !plain {
		name = cleanName(server) + "__" + name
	}
	if len(name) > maxName || n[name] {
		hash := sha256.Sum256([]byte(server + "\x00" + tool))
		name = name[:min(len(name), maxName-suffixLength)] + "_" + hex.EncodeToString(hash[:])[:suffixLength-1]
	}
	n[name] = true
	return name
}

// cleanName replaces characters that tool names cannot contain.
func cleanName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}
