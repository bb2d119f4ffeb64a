package storekey

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// The keys of named environments. An archive is reserved for the node that makes it. Each try writes a copy of its own,
// so that no part ever changes.
//
//	environments/names/<name in hex>              the ready environment with a name, a v1.Environment
//	environments/archives/<archive>/owner         the environment for which an archive is reserved, until it is kept
//	environments/archives/<archive>/<copy>/<n>    n-th part of a copy
const (
	// EnvironmentsPrefix begins all keys of environments.
	EnvironmentsPrefix = "environments/"
	// EnvironmentNamesPrefix begins the keys of ready environments.
	EnvironmentNamesPrefix = EnvironmentsPrefix + "names/"
	// EnvironmentArchivesPrefix begins the keys of the archives.
	EnvironmentArchivesPrefix = EnvironmentsPrefix + "archives/"

	ownerSegment = "owner"
	// Lengths of the names of archives and copies in hexadecimal digits.
	archiveDigits, copyDigits = 32, 16
)

// EnvironmentName returns the key of the ready environment with a name. Names are encoded, because they may end like
// temporary files.
func EnvironmentName(name string) string {
	return EnvironmentNamesPrefix + hex.EncodeToString([]byte(name))
}

// ParseEnvironmentName returns the name in a key that EnvironmentName has made, or false for any other key.
func ParseEnvironmentName(key string) (name string, ok bool) {
	digits, ok := strings.CutPrefix(key, EnvironmentNamesPrefix)
	if !ok || !isHex(digits) {
		return "", false
	}
	decoded, err := hex.DecodeString(digits)
	return string(decoded), err == nil && len(decoded) > 0
}

// EnvironmentArchive returns the prefix of the keys of an archive, or of one copy of it if the name is <archive>/<copy>.
func EnvironmentArchive(archive string) string { return EnvironmentArchivesPrefix + archive + "/" }

// EnvironmentOwner returns the key of the v1.Environment for which an archive is reserved.
func EnvironmentOwner(archive string) string { return EnvironmentArchive(archive) + ownerSegment }

// EnvironmentPart returns the key of the n-th part, from 0, of a copy named <archive>/<copy>.
func EnvironmentPart(stored string, n int) string {
	// Six digits keep the parts in order in a list.
	return EnvironmentArchive(stored) + fmt.Sprintf("%06d", n)
}

// ParseEnvironmentPart returns the copy and the number in a key that EnvironmentPart has made, or false for any other
// key.
func ParseEnvironmentPart(key string) (stored string, n int, ok bool) {
	rest, ok := strings.CutPrefix(key, EnvironmentArchivesPrefix)
	stored, digits, found := cutLast(rest, "/")
	n, err := strconv.Atoi(digits)
	ok = ok && found && err == nil && IsEnvironmentCopy(stored) && n >= 0 && key == EnvironmentPart(stored, n)
	if !ok {
		return "", 0, false
	}
	return stored, n, true
}

// ParseEnvironmentArchive returns the archive that a key belongs to.
func ParseEnvironmentArchive(key string) (archive string, ok bool) {
	rest, ok := strings.CutPrefix(key, EnvironmentArchivesPrefix)
	archive, _, found := strings.Cut(rest, "/")
	return archive, ok && found && IsEnvironmentArchive(archive)
}

// IsEnvironmentArchive reports whether a name is the name of an archive: 32 hexadecimal digits.
func IsEnvironmentArchive(name string) bool { return len(name) == archiveDigits && isHex(name) }

// IsEnvironmentCopy reports whether a name is the name of a copy: the name of its archive, a slash, and 16 hexadecimal
// digits.
func IsEnvironmentCopy(name string) bool {
	archive, rest, ok := strings.Cut(name, "/")
	return ok && IsEnvironmentArchive(archive) && len(rest) == copyDigits && isHex(rest)
}

func isHex(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') })
}
