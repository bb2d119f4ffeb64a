package executor

import (
	"context"
	"errors"
	"io"

	v1 "switchyard/proto/switchyard/v1"
)

// Captured describes the archive of an environment.
type Captured struct {
	// Kind is one of the constants v1.Environment...
	Kind string
	// ImageID is the id of the image in the engine that captured it, or "" for a disk.
	ImageID string
}

// Environments gives access to the named environments of a deployment. It is safe for concurrent use.
type Environments interface {
	// Find returns the newest ready version of an environment, or ErrNoEnvironment.
	Find(ctx context.Context, name string) (*v1.Environment, error)
	// Open reads the archive of an environment from its beginning. If the archive differs from what was stored, the last Read
	// returns an error instead of io.EOF. It returns ErrNoEnvironment if a newer version has replaced this one meanwhile; the
	// caller then calls Find again.
	Open(ctx context.Context, e *v1.Environment) (io.ReadCloser, error)
}

// ErrNoEnvironment reports that no environment has the given name, or that it has been removed.
var ErrNoEnvironment = errors.New("environment not found")
