// Package environments keeps the named environments of a deployment in a store: of each the archive, in parts, and a manifest that
// names it.
//
//	Reserve ──▶ Writer puts parts ──▶ Keep: the name has the archive ──▶ Open reads the parts
//	   │                 │                       │ the older archive is deleted
//	   └── DeleteArchive, or Clean after some days
//
// A part never changes, and each Writer has a copy of its own below the archive: a second try to make an archive disturbs
// neither the first one nor readers. No more than two parts of an archive that is written are in memory
// at once, and no more than four of one that is read.
//
// The package may import proto, activities/executor and activities/store; it knows no Temporal.
package environments
