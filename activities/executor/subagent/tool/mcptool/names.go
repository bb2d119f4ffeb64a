package mcptool

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// maxName is the longest name of a tool that providers take.
	maxName = 64
	// suffixLength is the length of what makes a name unique: "_" and a part of a hash.
	suffixLength = 9
)

// toolNames are the names that are in use.
type toolNames map[string]bool

// unique returns the name of a tool of a server, and without that of the server if it is plain. It depends on the two names, and on whether an earlier tool has the name
// already, so that an attempt that continues a conversation finds the same names.
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

// cleanName replaces what the name of a tool cannot have.
func cleanName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}
