package environments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

var (
	// ErrExists means that an environment of that name exists and was not to be replaced.
	ErrExists = errors.New("an environment of that name already exists")
	// ErrIncomplete means that some parts of an archive are not in the store yet; a node may still have them in its spool.
	ErrIncomplete = errors.New("parts of the archive are not stored yet")
	// ErrNotReserved means that an archive is no longer reserved because its creation was abandoned.
	ErrNotReserved = errors.New("the archive is no longer reserved")
)

// Keep publishes an archive, which a Writer has stored, as the environment of its name and deletes the archive of the previous
// version. e.Version is the version that it replaces, or 0 if the name is expected to be new; in that case an existing
// environment causes ErrExists. Keep returns the environment as stored. It is idempotent: a second call for the same archive
// completes whatever the first one left undone.
func (l *Library) Keep(ctx context.Context, e *v1.Environment) (*v1.Environment, error) {
	if err := Validate(e); err != nil {
		return nil, fmt.Errorf("keep %w", err)
	}
	older, err := l.Find(ctx, e.GetName())
	if err != nil && !errors.Is(err, executor.ErrNoEnvironment) {
		return nil, err
	}
	if older.GetArchive() == e.GetArchive() {
		if err := l.settle(ctx, e.GetArchive()); err != nil {
			return nil, err
		}
		// Delete the archive of the previous version, which no name refers to any more.
		_, err := l.Clean(ctx, time.Time{})
		return older, err
	}
	if older != nil && e.GetVersion() == 0 {
		return nil, fmt.Errorf("keep environment %s: %w", e.GetName(), ErrExists)
	}
	if err := l.CheckParts(ctx, e); err != nil {
		return nil, fmt.Errorf("keep environment %s: %w", e.GetName(), err)
	}
	kept := proto.CloneOf(e)
	kept.Version = max(e.GetVersion(), older.GetVersion()) + 1
	kept.State, kept.Error, kept.ReadyAt = v1.EnvironmentReady, "", timestamppb.New(l.now())
	key := storekey.EnvironmentName(e.GetName())
	if err := l.store.PutMessage(ctx, key, kept); err != nil {
		return nil, err
	}
	// DeleteArchive removes the owner first, then looks for a name that has the archive, and only then deletes the parts. So of
	// Keep and a concurrent DeleteArchive at least one sees the other.
	if _, err := l.Owner(ctx, archiveOf(e.GetArchive())); errors.Is(err, executor.ErrNoEnvironment) {
		undo := l.store.Delete
		if older != nil {
			undo = func(ctx context.Context, key string) error { return l.store.PutMessage(ctx, key, older) }
		}
		return nil, errors.Join(fmt.Errorf("keep environment %s: %w", e.GetName(), ErrNotReserved), undo(ctx, key))
	} else if err != nil {
		return nil, err
	}
	if err := l.settle(ctx, e.GetArchive()); err != nil {
		return nil, err
	}
	return kept, l.deleteBelow(ctx, archiveOf(older.GetArchive()))
}

// Restore stores an environment of another deployment under its name, and deletes the archive of the environment that it replaces,
// if that is another one. Its own archive may come later: CheckParts reports whether it is there.
func (l *Library) Restore(ctx context.Context, e *v1.Environment) error {
	if err := Validate(e); err != nil {
		return fmt.Errorf("restore %w", err)
	}
	older, err := l.Find(ctx, e.GetName())
	if err != nil && !errors.Is(err, executor.ErrNoEnvironment) {
		return err
	}
	kept := proto.CloneOf(e)
	kept.State, kept.Error, kept.Creation = v1.EnvironmentReady, "", nil
	if older != nil { // a node may still have an archive under its version
		kept.Version = max(e.GetVersion(), older.GetVersion()+1)
	}
	if err := l.store.PutMessage(ctx, storekey.EnvironmentName(e.GetName()), kept); err != nil {
		return err
	}
	if archiveOf(older.GetArchive()) == archiveOf(e.GetArchive()) {
		return nil
	}
	return l.deleteBelow(ctx, archiveOf(older.GetArchive()))
}

// Validate returns an error unless an environment can be stored.
func Validate(e *v1.Environment) error {
	if !v1.IsEnvironmentName(e.GetName()) || !storekey.IsEnvironmentCopy(e.GetArchive()) || e.GetKind() == "" || e.GetDigest() == "" {
		return fmt.Errorf("environment %q: it needs a name, a kind, a digest and an archive", e.GetName())
	}
	return nil
}

// CheckParts returns ErrIncomplete unless every part of an environment's archive is stored.
func (l *Library) CheckParts(ctx context.Context, e *v1.Environment) error {
	stored := int32(0)
	for key, err := range l.store.Keys(ctx, storekey.EnvironmentArchive(e.GetArchive())) {
		if err != nil {
			return err
		}
		if _, n, ok := storekey.ParseEnvironmentPart(key); ok && n < int(e.GetParts()) {
			stored++
		}
	}
	if stored < e.GetParts() {
		return fmt.Errorf("%w: %d of %d are", ErrIncomplete, stored, e.GetParts())
	}
	return nil
}

// settle ends the reservation of an archive and deletes all its copies other than kept.
func (l *Library) settle(ctx context.Context, kept string) error {
	archive := archiveOf(kept)
	if err := l.store.Delete(ctx, storekey.EnvironmentOwner(archive)); err != nil {
		return err
	}
	return l.deleteIf(ctx, archive, func(key string) bool {
		stored, _, ok := storekey.ParseEnvironmentPart(key)
		return !ok || stored != kept
	})
}
