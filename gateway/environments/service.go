package environments

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"
	"strings"

	"connectrpc.com/connect"

	"switchyard/activities/executor"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/nearest"
)

// defaultPage is how many environments a page holds that names no size.
const defaultPage = 1000

// Library has the environments that are ready. It is safe for concurrent use. An unknown name is executor.ErrNoEnvironment.
type Library interface {
	// Find returns an environment.
	Find(ctx context.Context, name string) (*v1.Environment, error)
	// List returns all environments by name.
	List(ctx context.Context) ([]*v1.Environment, error)
	// Delete removes an environment with its archive, and returns what it was.
	Delete(ctx context.Context, name string) (*v1.Environment, error)
	// Reserve lets a node write an archive for the environment of a name.
	Reserve(ctx context.Context, archive, node, name string) error
	// DeleteArchive ends the reservation of an archive, and removes it unless an environment has it.
	DeleteArchive(ctx context.Context, archive string) error
}

// Creations are the workflows that create environments. It is safe for concurrent use.
type Creations interface {
	// Start starts a workflow, or returns a *serviceerror.WorkflowExecutionAlreadyStarted while one of the name runs.
	Start(ctx context.Context, in *v1.CaptureRequest) error
	// Get returns the environment that is being created under a name, or whose creation has failed lately, or nil. Its version is the one
	// that is created.
	Get(ctx context.Context, name string) (*v1.Environment, error)
	// List returns all that Get would, by name.
	List(ctx context.Context) (map[string]*v1.Environment, error)
	// End has a workflow that runs create nothing, and returns once it does not. It does nothing if none runs.
	End(ctx context.Context, name string) error
	// Forget hides a creation that has failed.
	Forget(ctx context.Context, name string) error
}

// Nodes are the nodes of the fleet. They come in any order, with or without snapshots.
type Nodes interface {
	List(ctx context.Context) ([]*v1.Node, error)
}

// Usage finds who uses environments.
type Usage interface {
	// Runs returns open runs, whoever owns them, whose definitions name an environment: most of them, or fewer if there are no more.
	Runs(ctx context.Context, name string, most int) ([]string, error)
}

// Source is a task that runs, of which an environment can be made.
type Source struct {
	Run, Chain, Task, Type, Node string
	Claim                        int32
}

// Service answers the calls of EnvironmentService. It is safe for concurrent use.
type Service struct {
	Library   Library
	Creations Creations
	Nodes     Nodes
	Usage     Usage
	// FindSource returns the attempt that the caller of ctx means by a run and a task or instance, or by "" the only one of a type that
	// fits, as for sessions: a caller captures what it may enter. purpose says in errors what the attempts are looked for.
	FindSource func(ctx context.Context, run, task, purpose string, isFit func(taskType string) bool) (Source, error)
}

var _ switchyardv1connect.EnvironmentServiceHandler = Service{}

// GetEnvironment returns an environment.
func (s Service) GetEnvironment(ctx context.Context, req *connect.Request[v1.GetEnvironmentRequest]) (*connect.Response[v1.GetEnvironmentResponse], error) {
	e, err := s.find(ctx, req.Msg.GetName())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.GetEnvironmentResponse{Environment: e}), nil
}

// ListEnvironments lists the environments.
func (s Service) ListEnvironments(ctx context.Context, req *connect.Request[v1.ListEnvironmentsRequest]) (*connect.Response[v1.ListEnvironmentsResponse], error) {
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	var first string // name of the first environment of the page
	if token := req.Msg.GetPageToken(); token != "" {
		if first, _, err = pages.Place(token); err != nil {
			return nil, err
		}
	}
	all, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(int(req.Msg.GetPageSize()), defaultPage)
	all = all[sort.Search(len(all), func(i int) bool { return all[i].GetName() >= first }):]
	res := &v1.ListEnvironmentsResponse{Items: all[:min(len(all), limit)]}
	if len(all) > limit {
		res.NextPageToken = pages.Token(all[limit].GetName(), "")
	}
	return connect.NewResponse(res), nil
}

// find returns the environment of a name, ready or not, or NotFound with the near name.
func (s Service) find(ctx context.Context, name string) (*v1.Environment, error) {
	var e *v1.Environment
	if v1.IsEnvironmentName(name) {
		ready, err := s.ready(ctx, name)
		if err != nil {
			return nil, err
		}
		creation, err := s.Creations.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		if creation.GetState() == "" && ready == nil {
			// A creation that ended between the two looks.
			if ready, err = s.ready(ctx, name); err != nil {
				return nil, err
			}
		}
		e = join(ready, creation)
	}
	if e == nil {
		return nil, rpcerror.Missing("environment", name, s.didYouMean(ctx, name))
	}
	return e, nil
}

// ready returns the version of an environment that is ready, or nil.
func (s Service) ready(ctx context.Context, name string) (*v1.Environment, error) {
	e, err := s.Library.Find(ctx, name)
	if errors.Is(err, executor.ErrNoEnvironment) {
		return nil, nil
	}
	return e, err
}

// all returns all environments by name, ready or not.
func (s Service) all(ctx context.Context) ([]*v1.Environment, error) {
	creations, err := s.Creations.List(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := s.Library.List(ctx) // after the creations, so that what becomes ready meanwhile is not missing
	if err != nil {
		return nil, err
	}
	var all []*v1.Environment
	for _, ready := range kept {
		all = append(all, join(ready, creations[ready.GetName()]))
		delete(creations, ready.GetName())
	}
	for _, creation := range creations {
		all = append(all, creation)
	}
	slices.SortFunc(all, func(a, b *v1.Environment) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, nil
}

// didYouMean returns a hint for an unknown name, or "".
func (s Service) didYouMean(ctx context.Context, name string) string {
	all, err := s.all(ctx)
	if err != nil {
		return "" // the hint is not worth an error
	}
	known := make([]string, 0, len(all))
	for _, e := range all {
		known = append(known, e.GetName())
	}
	return nearest.DidYouMean(name, known)
}

// join returns an environment as people see it: the version that is ready, with the creation of the next one. Either may be nil.
func join(ready, creation *v1.Environment) *v1.Environment {
	switch {
	case ready == nil:
		return creation
	case creation == nil || isOf(ready, creation):
		return ready
	}
	ready.Creation = &v1.EnvironmentCreation{
		State: creation.GetState(), Error: creation.GetError(), Version: max(creation.GetVersion(), ready.GetVersion()+1), Size: creation.GetSize(),
		Node: creation.GetNode(), CreatedBy: creation.GetCreatedBy(), CreatedAt: creation.GetCreatedAt(),
	}
	return ready
}

// isOf reports whether an environment has come of a creation whose workflow has not ended.
func isOf(ready, creation *v1.Environment) bool {
	archive, _, _ := strings.Cut(ready.GetArchive(), "/") // without the try that stored it
	return archive == creation.GetArchive()
}
