package definitions

import (
	"cmp"
	"context"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/library"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

// maxDefinitionBytes bounds a definition that is sent as a message. A document has the same bound.
const maxDefinitionBytes = 1 << 20

// Library holds the stored workflows. It is safe for concurrent use. An unknown name yields library.ErrUnknown.
type Library interface {
	// Get returns a stored workflow.
	Get(ctx context.Context, name string) (*library.Stored, error)
	// List returns all stored workflows, ordered by name.
	List(ctx context.Context) ([]*library.Stored, error)
}

// Environments holds the named environments. It is safe for concurrent use. An unknown name yields executor.ErrNoEnvironment.
type Environments interface {
	// Find returns the newest ready version of an environment.
	Find(ctx context.Context, name string) (*v1.Environment, error)
}

// Targets holds the targets of notifications. It is safe for concurrent use.
type Targets interface {
	// List returns all targets, with warnings about those that cannot be read.
	List(ctx context.Context) ([]*v1.NotificationTarget, []string, error)
}

// Nodes is the registry of nodes. It is safe for concurrent use.
type Nodes interface {
	// KeptFor returns what the nodes are kept for, sorted.
	KeptFor(ctx context.Context) ([]string, error)
}

// Checker reads and checks definitions. It is safe for concurrent use.
type Checker struct {
	Library      Library
	Environments Environments
	Targets      Targets
	Nodes        Nodes
	// Defaults are the settings of tasks that do not set their own.
	Defaults definition.RunDefaults
}

// Read returns the checked definition of a request.
func (c Checker) Read(ctx context.Context, req *v1.SubmitRunRequest) (definition.Checked, error) {
	name := req.GetWorkflow()
	if name == "" {
		return c.Parse(req.GetDefinition(), req.GetFile(), req.GetDocument())
	}
	if err := CheckName(name); err != nil {
		return definition.Checked{}, err
	}
	stored, err := c.Library.Get(ctx, name)
	if err != nil {
		return definition.Checked{}, c.LibraryError(ctx, name, err)
	}
	// A newer version of the program may have stricter rules than the one that stored the definition.
	return c.complete(stored.Definition)
}

// Parse returns the checked definition from a message or a document, with the defaults of the fleet filled in.
func (c Checker) Parse(def *v1.Definition, file, document string) (definition.Checked, error) {
	if def != nil {
		if size := proto.Size(def); size > maxDefinitionBytes {
			return definition.Checked{}, rpcerror.Invalid("the definition has %d bytes; the maximum is %d", size, maxDefinitionBytes)
		}
		return c.complete(def)
	}
	checked, err := definition.ParseChecked(cmp.Or(file, "definition"), []byte(document))
	if err != nil {
		return definition.Checked{}, Error(err)
	}
	c.Defaults.FillDefinition(checked.Definition)
	return checked, nil
}

// complete returns a checked definition with its own defaults and those of the fleet filled into its tasks.
func (c Checker) complete(def *v1.Definition) (definition.Checked, error) {
	checked, err := definition.CompleteChecked(def)
	if err != nil {
		return definition.Checked{}, Error(err)
	}
	c.Defaults.FillDefinition(checked.Definition)
	return checked, nil
}

// Error returns err as InvalidArgument, with every problem as its detail.
func Error(err error) error {
	if err == nil {
		return nil
	}
	if problems, ok := errors.AsType[source.Problems](err); ok {
		return rpcerror.InvalidWith(err, &v1.ValidationFailure{Problems: problems})
	}
	return connect.NewError(connect.CodeInvalidArgument, err)
}
