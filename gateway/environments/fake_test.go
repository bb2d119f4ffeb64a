package environments

import (
	"context"
	"maps"
	"slices"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// fakes implements the dependencies of a Service in memory.
type fakes struct {
	kept      map[string]*v1.Environment
	creations map[string]*v1.Environment
	nodes     []*v1.Node
	users     map[string][]string
	sources   map[string]Source // by run and task

	reserved, released []string // archives
	started            []*historyv1.CaptureRequest
	ended, forgotten   []string
	overtaken          bool // another request starts the creation first
}

func (f *fakes) service() Service {
	return Service{Library: f, Creations: fakeCreations{f}, Nodes: fakeNodes{f}, Usage: fakeUsage{f}, FindSource: f.find}
}

func (f *fakes) find(_ context.Context, run, task, purpose string, isFit func(string) bool) (Source, error) {
	for _, key := range slices.Sorted(maps.Keys(f.sources)) {
		if source := f.sources[key]; source.Run == run && (source.Task == task || task == "" && isFit(source.Type)) {
			return source, nil
		}
	}
	return Source{}, rpcerror.WrongState("no task of run %s runs on a node now; %s", run, purpose)
}

func (f *fakes) Find(_ context.Context, name string) (*v1.Environment, error) {
	if e := f.kept[name]; e != nil {
		return proto.CloneOf(e), nil
	}
	return nil, executor.ErrNoEnvironment
}

func (f *fakes) List(context.Context) (list []*v1.Environment, warnings []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(f.kept)) {
		list = append(list, proto.CloneOf(f.kept[name]))
	}
	return list, nil, nil
}

func (f *fakes) Delete(ctx context.Context, name string) (*v1.Environment, error) {
	e, err := f.Find(ctx, name)
	delete(f.kept, name)
	return e, err
}

func (f *fakes) Reserve(_ context.Context, archive, node, name string) error {
	f.reserved = append(f.reserved, archive+" "+node+" "+name)
	return nil
}

func (f *fakes) DeleteArchive(_ context.Context, archive string) error {
	f.released = append(f.released, archive)
	return nil
}

type fakeCreations struct{ *fakes }

func (f fakeCreations) Start(_ context.Context, in *historyv1.CaptureRequest) error {
	if f.overtaken {
		return serviceerror.NewWorkflowExecutionAlreadyStarted("it runs", "", "")
	}
	f.started = append(f.started, proto.CloneOf(in))
	return nil
}

func (f fakeCreations) Get(_ context.Context, name string) (*v1.Environment, error) {
	return f.creations[name], nil
}

func (f fakeCreations) List(context.Context) (map[string]*v1.Environment, []string, error) {
	return maps.Clone(f.creations), nil, nil
}

func (f fakeCreations) End(_ context.Context, name string) error {
	f.ended = append(f.ended, name)
	return nil
}

func (f fakeCreations) Forget(_ context.Context, name string) error {
	f.forgotten = append(f.forgotten, name)
	return nil
}

type fakeNodes struct{ *fakes }

func (f fakeNodes) List(context.Context) ([]*v1.Node, error) { return slices.Clone(f.nodes), nil }

type fakeUsage struct{ *fakes }

func (f fakeUsage) Runs(_ context.Context, name string, most int) ([]string, error) {
	users := f.users[name]
	return users[:min(most, len(users))], nil
}
