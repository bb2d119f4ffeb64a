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
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/nearest"
)

// defaultPage is the page size of a request without one.
const defaultPage = 1000

// Library holds the ready environments. It is safe for concurrent use. An unknown name yields executor.ErrNoEnvironment.
type Library interface {
	// Find returns an environment.
	Find(ctx context.Context, name string) (*v1.Environment, error)
	// List returns all environments that can be read, ordered by name, and a warning for each of the others.
	List(ctx context.Context) (all []*v1.Environment, warnings []string, err error)
	// Delete removes an environment with its archive and returns the removed environment.
	Delete(ctx context.Context, name string) (*v1.Environment, error)
	// Reserve allows a node to write an archive for the named environment.
	Reserve(ctx context.Context, archive, node, name string) error
	// DeleteArchive ends the reservation of an archive. It removes the archive unless an environment uses it.
	DeleteArchive(ctx context.Context, archive string) error
}

// Creations manages the workflows that create environments. It is safe for concurrent use.
type Creations interface {
	// Start starts a workflow. It returns a *serviceerror.WorkflowExecutionAlreadyStarted if a workflow for the name is
	// running.
	Start(ctx context.Context, in *historyv1.CaptureRequest) error
	// Get returns the environment that is being created under a name or whose creation failed recently, or nil. Its version
	// is the one being created.
	Get(ctx context.Context, name string) (*v1.Environment, error)
	// List returns the environments that Get would return, keyed by name, and a warning for each that cannot be read.
	List(ctx context.Context) (all map[string]*v1.Environment, warnings []string, err error)
	// End cancels a running creation and returns once it cannot create the environment any more. It is a no-op if none is
	// running.
	End(ctx context.Context, name string) error
	// Forget hides a failed creation.
	Forget(ctx context.Context, name string) error
}

// Nodes lists the nodes of the fleet in any order, with or without snapshots.
type Nodes interface {
	List(ctx context.Context) ([]*v1.Node, error)
}

// Usage finds the runs that use environments.
type Usage interface {
	// Runs returns open runs, of any owner, whose definitions name an environment, at most `most` of them.
	Runs(ctx context.Context, name string, most int) ([]string, error)
}

// Source is a running task that an environment can be made from.
type Source struct {
	Run, Chain, Task, Type, Node string
	Claim                        int32
}

// Service implements EnvironmentService. It is safe for concurrent use.
type Service struct {
	Library   Library
	Creations Creations
	Nodes     Nodes
	Usage     Usage
	// FindSource returns the attempt that a run and a task or instance name. An empty task means the only one whose type
	// fits. The rules are those of sessions: a caller may capture what it may enter. purpose ends the texts of errors.
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

// ListEnvironments returns a page of environments.
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
	all, warnings, err := s.listAll(ctx)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(int(req.Msg.GetPageSize()), defaultPage)
	all = all[sort.Search(len(all), func(i int) bool { return all[i].GetName() >= first }):]
	res := &v1.ListEnvironmentsResponse{Items: all[:min(len(all), limit)], Warnings: warnings}
	if len(all) > limit {
		res.NextPageToken = pages.Token(all[limit].GetName(), "")
	}
	return connect.NewResponse(res), nil
}

// find returns the named environment, ready or not, or NotFound with the nearest name.
func (s Service) find(ctx context.Context, name string) (*v1.Environment, error) {
	var e *v1.Environment
	if v1.IsEnvironmentName(name) {
		ready, err := s.findReady(ctx, name)
		if err != nil {
			return nil, err
		}
		creation, err := s.Creations.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		if creation.GetState() == "" && ready == nil {
			// The creation may have ended between the two reads.
			if ready, err = s.findReady(ctx, name); err != nil {
				return nil, err
			}
		}
		e = mergeCreation(ready, creation)
	}
	if e == nil {
		return nil, rpcerror.Missing("environment", name, s.didYouMean(ctx, name))
	}
	return e, nil
}

// findReady returns the ready version of an environment, or nil if there is none.
func (s Service) findReady(ctx context.Context, name string) (*v1.Environment, error) {
	e, err := s.Library.Find(ctx, name)
	if errors.Is(err, executor.ErrNoEnvironment) {
		return nil, nil
	}
	return e, err
}

// listAll returns all environments, ready or not, ordered by name, and warnings of those that cannot be read.
func (s Service) listAll(ctx context.Context) (all []*v1.Environment, warnings []string, err error) {
	creations, warnings, err := s.Creations.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	kept, more, err := s.Library.List(ctx) // read after the creations, so that an environment that becomes ready in between is not missed
	if err != nil {
		return nil, nil, err
	}
	for _, ready := range kept {
		all = append(all, mergeCreation(ready, creations[ready.GetName()]))
		delete(creations, ready.GetName())
	}
	for _, creation := range creations {
		all = append(all, creation)
	}
	slices.SortFunc(all, func(a, b *v1.Environment) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, append(warnings, more...), nil
}

// didYouMean returns a hint for an unknown name, or "".
func (s Service) didYouMean(ctx context.Context, name string) string {
	all, _, err := s.listAll(ctx)
	if err != nil {
		return "" // best effort: the request should not fail for lack of a hint
	}
	known := make([]string, 0, len(all))
	for _, e := range all {
		known = append(known, e.GetName())
	}
	return nearest.DidYouMean(name, known)
}

// mergeCreation merges the ready version of an environment with the creation of its next version. Either may be nil.
func mergeCreation(ready, creation *v1.Environment) *v1.Environment {
	switch {
	case ready == nil:
		return creation
	case creation == nil || isResultOf(ready, creation):
		return ready
	}
	ready.Creation = &v1.EnvironmentCreation{
		State: creation.GetState(), Error: creation.GetError(), Version: max(creation.GetVersion(), ready.GetVersion()+1), Size: creation.GetSize(),
		Node: creation.GetNode(), CreatedBy: creation.GetCreatedBy(), CreatedAt: creation.GetCreatedAt(),
	}
	return ready
}

// isResultOf reports whether a creation produced the ready environment. The workflow of the creation is then about to end.
func isResultOf(ready, creation *v1.Environment) bool {
	archive, _, _ := strings.Cut(ready.GetArchive(), "/") // without the attempt that stored it
	return archive == creation.GetArchive()
}
