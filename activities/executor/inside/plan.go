package inside

import "time"

// Name is the argv[0] of this program when it runs as a helper.
const Name = "switchyard-inside"

// File descriptors of a helper, in addition to its standard input and output.
const (
	planFile = 3
	sayPipe  = 4
	// rootDir is open only if the helper enters another root than the worker's.
	rootDir = 5
)

// Actions of a helper.
const (
	serveSFTP = "sftp"
	readTar   = "read_tar"
	writeTar  = "write_tar"
)

// plan describes what a helper does, and as which user.
type plan struct {
	Action string
	// Root reports that rootDir is open.
	Root bool
	// Switch makes the helper change to the user with UID, GID and Groups.
	Switch   bool
	UID, GID int
	Groups   []int
	Dir      string
	// Path and Rename have the same meaning as in executor.Inside.
	Path   string
	Rename bool
}

// answer is the result that a helper reports before it ends.
type answer struct {
	// Error explains what the helper could not do, or is "" on success.
	Error string
	// Kind is a key of kinds, or "".
	Kind string
	// Denied reports that the helper could not assume the root and the user of its plan.
	Denied bool
}

// endGrace is how long a helper may take to end after SIGTERM. It removes incomplete files in that
// time.
const endGrace = 20 * time.Second
