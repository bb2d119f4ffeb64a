package environments

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// PartBytes is the size of each part of an archive but the last, which is smaller.
const PartBytes = 8 << 20

// Library has the environments of a store. A node whose store is a gateway finds, opens and writes; the rest is for gateways and
// control processes. It is safe for concurrent use, also by several processes.
type Library struct {
	store *store.Store
	now   func() time.Time
}

var _ executor.Environments = (*Library)(nil)

// New returns the library of a store.
func New(s *store.Store) *Library { return &Library{store: s, now: time.Now} }

// NewArchive returns the name of an archive that is not there yet.
func NewArchive() string { return randomHex(16) }

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// Find returns the newest version of an environment that is ready, or executor.ErrNoEnvironment.
func (l *Library) Find(ctx context.Context, name string) (*v1.Environment, error) {
	if !v1.IsEnvironmentName(name) {
		return nil, fmt.Errorf("environment %q: %w", name, executor.ErrNoEnvironment)
	}
	e := &v1.Environment{}
	switch err := l.store.GetMessage(ctx, storekey.EnvironmentName(name), e); {
	case errors.Is(err, store.ErrNotFound):
		return nil, fmt.Errorf("environment %q: %w", name, executor.ErrNoEnvironment)
	case err != nil:
		return nil, fmt.Errorf("environment %q: %w", name, err)
	}
	return e, nil
}

// List returns the environments that are ready, by name. A gateway does not list them.
func (l *Library) List(ctx context.Context) (list []*v1.Environment, err error) {
	for key, err := range l.store.Keys(ctx, storekey.EnvironmentNamesPrefix) {
		if err != nil {
			return nil, err
		}
		name, ok := storekey.ParseEnvironmentName(key)
		if !ok {
			continue
		}
		e, err := l.Find(ctx, name)
		if errors.Is(err, executor.ErrNoEnvironment) { // deleted meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// Delete removes an environment and its archive, and returns the environment, or executor.ErrNoEnvironment. Readers of the archive
// get that error, too.
func (l *Library) Delete(ctx context.Context, name string) (*v1.Environment, error) {
	e, err := l.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := l.store.DeleteEnvironmentValue(ctx, storekey.EnvironmentName(name)); err != nil {
		return nil, err
	}
	return e, l.deleteBelow(ctx, archiveOf(e.GetArchive()))
}

// Reserve lets a node write the parts of an archive for an environment of a name, until the archive is kept.
func (l *Library) Reserve(ctx context.Context, archive, node, name string) error {
	if !storekey.IsEnvironmentArchive(archive) || node == "" || !v1.IsEnvironmentName(name) {
		return fmt.Errorf("reserve archive %q for environment %q of node %q: it needs all three", archive, name, node)
	}
	existed, err := l.store.PutMessageIfAbsent(ctx, storekey.EnvironmentOwner(archive), &v1.Environment{
		Name: name, Node: node, Archive: archive, CreatedAt: timestamppb.New(l.now()),
	})
	if err != nil || !existed {
		return err
	}
	owner, err := l.Owner(ctx, archive)
	if err == nil && (owner.GetNode() != node || owner.GetName() != name) {
		err = fmt.Errorf("archive %s is reserved for environment %s of node %s", archive, owner.GetName(), owner.GetNode())
	}
	return err
}

// Owner returns for whom an archive is reserved, with name, node and created_at, or executor.ErrNoEnvironment if it is not or has been
// kept.
func (l *Library) Owner(ctx context.Context, archive string) (*v1.Environment, error) {
	if !storekey.IsEnvironmentArchive(archive) {
		return nil, fmt.Errorf("archive %q: %w", archive, executor.ErrNoEnvironment)
	}
	owner := &v1.Environment{}
	switch err := l.store.GetMessage(ctx, storekey.EnvironmentOwner(archive), owner); {
	case errors.Is(err, store.ErrNotFound):
		return nil, fmt.Errorf("archive %s is not reserved: %w", archive, executor.ErrNoEnvironment)
	case err != nil:
		return nil, fmt.Errorf("archive %s: %w", archive, err)
	}
	return owner, nil
}
