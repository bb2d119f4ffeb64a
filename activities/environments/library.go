package environments

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
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
	err := l.store.GetMessage(ctx, storekey.EnvironmentName(name), e)
	if err == nil && e.GetName() != name {
		err = store.Unreadable(storekey.EnvironmentName(name), "environment "+name)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, fmt.Errorf("environment %q: %w", name, executor.ErrNoEnvironment)
	case err != nil:
		return nil, fmt.Errorf("environment %q: %w", name, err)
	}
	return e, nil
}

// List returns the ready environments that can be read, in the order of their names, and a warning for each of the others. It does
// not work on a store that is a gateway.
func (l *Library) List(ctx context.Context) (list []*v1.Environment, warnings []string, err error) {
	warnings, err = l.store.ReadEach(ctx, storekey.EnvironmentNamesPrefix, func(key string) error {
		name, ok := storekey.ParseEnvironmentName(key)
		if !ok {
			return nil
		}
		e, err := l.Find(ctx, name)
		if errors.Is(err, executor.ErrNoEnvironment) { // deleted meanwhile
			return nil
		}
		if err == nil {
			list = append(list, e)
		}
		return err
	}, func(_ string, err error) string {
		return err.Error() + "; remove that value from the store, and create the environment again"
	})
	return list, warnings, err
}

// listWhole returns all ready environments, or an error if one cannot be read: it may use any archive.
func (l *Library) listWhole(ctx context.Context) ([]*v1.Environment, error) {
	list, warnings, err := l.List(ctx)
	if err == nil && len(warnings) > 0 {
		err = fmt.Errorf("it is unknown which archives are in use: %s", strings.Join(warnings, "; "))
	}
	return list, err
}

// Delete removes an environment and its archive. It returns the removed environment, or executor.ErrNoEnvironment if there is
// none. Concurrent readers of the archive fail with executor.ErrNoEnvironment, too.
func (l *Library) Delete(ctx context.Context, name string) (*v1.Environment, error) {
	e, err := l.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := l.store.Delete(ctx, storekey.EnvironmentName(name)); err != nil {
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
