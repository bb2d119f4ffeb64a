package export

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/environments"
	"switchyard/activities/executor"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// environmentKind gives access to the ready environments. An item names the archive of an environment and does not contain it.
type environmentKind struct{ library *environments.Library }

func (k environmentKind) enabled() error { return nil }

func (k environmentKind) list(ctx context.Context) (names, warnings []string, err error) {
	all, warnings, err := k.library.List(ctx)
	for _, e := range all {
		names = append(names, e.GetName())
	}
	return sorted(names), warnings, err
}

func (k environmentKind) find(ctx context.Context, like *v1.ExportedItem) (*v1.ExportedItem, error) {
	e, err := k.library.Find(ctx, like.GetName())
	if errors.Is(err, executor.ErrNoEnvironment) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return environmentItem(e), nil
}

func environmentItem(e *v1.Environment) *v1.ExportedItem {
	return &v1.ExportedItem{Kind: v1.ExportEnvironment, Name: e.GetName(), Content: &v1.ExportedItem_Environment{Environment: e}}
}

func (k environmentKind) check(ctx context.Context, item *v1.ExportedItem) (*v1.ExportedItem, []string, error) {
	e := item.GetEnvironment()
	if kind := e.GetKind(); kind != v1.EnvironmentImage && kind != v1.EnvironmentDisk {
		return nil, nil, rpcerror.Invalid("environment %s has the kind %.64q; it must be image or disk", e.GetName(), kind)
	}
	if err := environments.Validate(e); err != nil {
		return nil, nil, rpcerror.Invalid("%w", err)
	}
	var warnings []string
	err := k.library.CheckParts(ctx, e)
	if errors.Is(err, environments.ErrIncomplete) {
		warnings, err = append(warnings, fmt.Sprintf("environment %s has no archive yet (%v): copy environments/archives/%s/ from the store that it comes from", e.GetName(), err, e.GetArchive())), nil
	}
	return environmentItem(e), warnings, err
}

func (k environmentKind) isSame(_ context.Context, item, stored *v1.ExportedItem) (bool, error) {
	// The version is that of a name in one deployment.
	a, b := proto.CloneOf(item.GetEnvironment()), proto.CloneOf(stored.GetEnvironment())
	a.Version, b.Version = 0, 0
	return proto.Equal(a, b), nil
}

func (k environmentKind) put(ctx context.Context, item, _ *v1.ExportedItem) error {
	return k.library.Restore(ctx, item.GetEnvironment())
}
