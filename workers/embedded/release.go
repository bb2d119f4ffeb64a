package embedded

import (
	"fmt"
	"slices"
)

// mark says how a database was last used: with which minor version of Temporal 1, and with which schema, as schemaVersion returns it.
type mark struct{ minor, schema uint32 }

const (
	// firstMinor is the first minor version that Switchyard embedded. The number of a mark counts from it.
	firstMinor = 32
	// schemaBits is the width of the schema in the number of a mark. SQLite leaves 31 bits for the whole number.
	schemaBits = 24
)

// number returns the mark as the number that the header of the database holds.
func (m mark) number() uint32 { return (m.minor-firstMinor)<<schemaBits | m.schema }

func parseMark(number uint32) mark {
	return mark{minor: number>>schemaBits + firstMinor, schema: number & (1<<schemaBits - 1)}
}

// String returns the version of Temporal.
func (m mark) String() string { return temporalVersion(m.minor) }

func temporalVersion(minor uint32) string { return fmt.Sprintf("1.%d", minor) }

// release is a minor version of Temporal that Switchyard has embedded.
type release struct {
	mark
	// since is the first version of Switchyard with it, or "" before the release.
	since string
	// steps are the statements that change the schema of the previous release to the one of this. They are those of the server's
	// folder schema/sqlite/v3, in versioned.
	steps []string
}

// releases are all minor versions that Switchyard has embedded, in order and without a gap: Temporal upgrades its data by one minor
// version at a time. The last one is that of this program.
var releases = []release{{mark: mark{minor: 32, schema: 110001}}}

// planUpgrade reports whether a database must be upgraded before the last release uses it, or returns why that release cannot use
// it, as the rest of a sentence about the database.
func planUpgrade(have mark, known []release) (isNeeded bool, err error) {
	own := known[len(known)-1]
	at := slices.IndexFunc(known, func(r release) bool { return r.minor == have.minor })
	switch {
	case have.minor > own.minor:
		return false, fmt.Errorf("was last used with Temporal %s, and this Switchyard has %s, which cannot read it: start a Switchyard with that version or the next one (`switchyard version` prints it)", have, own)
	case have.minor+1 < own.minor:
		next := known[at+1]
		by := next.since
		if by == "" {
			by = "one"
		}
		return false, fmt.Errorf("was last used with Temporal %s, and this Switchyard has %s, which can upgrade only from %s: start Switchyard %s (Temporal %s) with it once, stop that, and start this one",
			have, own, temporalVersion(own.minor-1), by, next)
	case at < 0 || known[at].schema != have.schema:
		return false, fmt.Errorf("has the schema %d, which no release of Switchyard with Temporal %s has made: use the Switchyard that made it, or another file", have.schema, have)
	}
	return have.minor < own.minor, nil
}
