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

// PartBytes is the size of each part of an archive except the last, which may be smaller.
const PartBytes = 8 << 20

// Library gives access to the environments in a store. A node whose store is a gateway can find, read and write environments; the
// other methods are for gateways and control processes. Library is safe for concurrent use, also across processes.
type Library struct {
	store *store.Store
	now   func() time.Time
}

var _ executor.Environments = (*Library)(nil)

// New returns the library of environments in a store.
func New(s *store.Store) *Library { return &Library{store: s, now: time.Now} }

// NewArchive returns a new, random archive name.
func NewArchive() string { return randomHex(16) }

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Find returns the newest ready version of an environment, or executor.ErrNoEnvironment.
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

// List returns the ready environments in the order of their names. It does not work on a store that is a gateway.
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

// Delete removes an environment and its archive. It returns the removed environment, or executor.ErrNoEnvironment if there is
// none. Concurrent readers of the archive fail with executor.ErrNoEnvironment, too.
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

// Reserve allows a node to write the parts of an archive for the environment name until the archive is kept. It is idempotent.
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

// Owner returns the reservation of an archive, with name, node and created_at set, or executor.ErrNoEnvironment if the archive is
// not reserved or has already been kept.
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
