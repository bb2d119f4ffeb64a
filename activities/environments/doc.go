// Package environments keeps the named environments of a deployment in a store. Each environment has an archive, in parts, and a
// manifest under its name.
//
//	Reserve ──▶ Writer puts parts ──▶ Keep: the name has the archive ──▶ Open reads the parts
//	   │                 │                       │ the older archive is deleted
//	   └── DeleteArchive, or Clean after some days
//
// A part never changes. Each Writer writes its own copy below the archive, so that a second attempt to make an archive disturbs
// neither the first attempt nor any reader. A Writer holds at most two parts in memory, a reader at most four.
//
// The package may import proto, activities/executor and activities/store; it does not depend on Temporal.
package environments
