package executor

import (
	"context"
	"errors"
	"io"

	v1 "switchyard/proto/switchyard/v1"
)

// Capturer captures attempts that run, and the images that they are made of, as environments. A *Refusal explains why something
// cannot be captured.
type Capturer interface {
	Executor

	// Capture writes the files of the attempt that runs under an id, without its mounts and its environment, to an archive. The
	// attempt stands still for as long as that needs. ErrNotRunning says that none runs.
	Capture(ctx context.Context, id string, to io.Writer) (Captured, error)
	// CaptureImage writes an image to an archive. The node fetches it if it does not have it, with the credentials for registries of a
	// name if that is not empty. say takes the progress, a line each.
	CaptureImage(ctx context.Context, image, registryAuth string, to io.Writer, say func(string)) (Captured, error)
}

// Captured is what the archive of an environment holds.
type Captured struct {
	// Kind is one of v1.Environment...
	Kind string
	// ImageID is the id of the image in the engine that has captured it; empty: it is a disk.
	ImageID string
}

// Environments are the named environments of a deployment. It is safe for concurrent use.
type Environments interface {
	// Find returns the newest version of an environment that is ready, or ErrNoEnvironment.
	Find(ctx context.Context, name string) (*v1.Environment, error)
	// Open reads the archive of an environment from its beginning. The last Read returns an error instead of io.EOF if the archive is
	// not what was stored, and ErrNoEnvironment if a newer version has taken its place meanwhile: Find it again then.
	Open(ctx context.Context, e *v1.Environment) (io.ReadCloser, error)
}

// ErrNoEnvironment says that there is no environment of a name, or not any more.
var ErrNoEnvironment = errors.New("there is no such environment")
