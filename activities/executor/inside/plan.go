package inside

import "time"

// Name is the argv[0] of this program while it is a helper.
const Name = "switchyard-inside"

// Descriptors of a helper, beside its standard input and output.
const (
	planFile = 3
	sayPipe  = 4
	// rootDir is there if the helper has another root than the worker.
	rootDir = 5
)

// What a helper does.
const (
	serveSFTP = "sftp"
	readTar   = "read_tar"
	writeTar  = "write_tar"
)

// plan says what a helper does, and as whom.
type plan struct {
	Action string
	// Root says that there is a rootDir.
	Root bool
	// Switch says that it becomes the user.
	Switch   bool
	UID, GID int
	Groups   []int
	Dir      string
	// Path and Rename are as executor.Inside has them.
	Path   string
	Rename bool
}

// answer is what a helper says before it ends.
type answer struct {
	// Error is why it could not do all that it was asked for; "": it did.
	Error string
	// Kind is one of kinds, or "".
	Kind string
	// Denied says that it could not become what the plan asks for.
	Denied bool
}

// endGrace is how long a helper may take to end after SIGTERM, in which it removes what is not whole.
const endGrace = 5 * time.Second
