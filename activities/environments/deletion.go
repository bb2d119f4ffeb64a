package environments

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"switchyard/activities/executor"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// archiveOf returns the archive that a stored copy belongs to.
func archiveOf(stored string) string {
	archive, _, _ := strings.Cut(stored, "/")
	return archive
}

// DeleteArchive ends the reservation of an archive and deletes its stored parts. An archive that belongs to an environment keeps
// its parts.
func (l *Library) DeleteArchive(ctx context.Context, archive string) error {
	archive = archiveOf(archive)
	if !storekey.IsEnvironmentArchive(archive) {
		return nil
	}
	if err := l.store.Delete(ctx, storekey.EnvironmentOwner(archive)); err != nil {
		return err
	}
	kept, err := l.listWhole(ctx)
	if err != nil {
		return err
	}
	if isKept(kept, archive) {
		return nil
	}
	return l.deleteBelow(ctx, archive)
}

func isKept(all []*v1.Environment, archive string) bool {
	return slices.ContainsFunc(all, func(e *v1.Environment) bool { return archiveOf(e.GetArchive()) == archive })
}

// Clean deletes the archives that belong to no environment and that are either not reserved or were reserved before the given
// time. It returns the number of deleted archives.
func (l *Library) Clean(ctx context.Context, before time.Time) (removed int, err error) {
	archives, err := l.archives(ctx)
	if err != nil {
		return 0, err
	}
	archives, err = l.withoutOwner(ctx, archives, before)
	if err != nil || len(archives) == 0 {
		return 0, err
	}
	// List the names after reading the owners: an archive gets its name before its reservation ends.
	kept, err := l.listWhole(ctx)
	if err != nil {
		return 0, err
	}
	for _, archive := range archives {
		if isKept(kept, archive) {
			continue
		}
		if err := l.DeleteArchive(ctx, archive); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// archives returns the archives that have values in the store, in ascending order.
func (l *Library) archives(ctx context.Context) (archives []string, err error) {
	for key, err := range l.store.Keys(ctx, storekey.EnvironmentArchivesPrefix) {
		if err != nil {
			return nil, err
		}
		if archive, ok := storekey.ParseEnvironmentArchive(key); ok && (len(archives) == 0 || archives[len(archives)-1] != archive) {
			archives = append(archives, archive)
		}
	}
	return archives, nil
}

// withoutOwner returns the given archives that are not reserved or were reserved before the given time.
func (l *Library) withoutOwner(ctx context.Context, archives []string, before time.Time) (without []string, err error) {
	for _, archive := range archives {
		owner, err := l.Owner(ctx, archive)
		if err != nil && !errors.Is(err, executor.ErrNoEnvironment) {
			return nil, err
		}
		if err != nil || owner.GetCreatedAt().AsTime().Before(before) {
			without = append(without, archive)
		}
	}
	return without, nil
}

// deleteBelow deletes every stored value of an archive.
func (l *Library) deleteBelow(ctx context.Context, archive string) error {
	return l.deleteIf(ctx, archive, func(string) bool { return true })
}

// deleteIf deletes the stored values of an archive whose keys satisfy chosen.
func (l *Library) deleteIf(ctx context.Context, archive string, chosen func(key string) bool) error {
	if !storekey.IsEnvironmentArchive(archive) {
		return nil
	}
	// Read the whole list first: a bucket may skip keys while others are being deleted.
	var keys []string
	for key, err := range l.store.Keys(ctx, storekey.EnvironmentArchive(archive)) {
		if err != nil {
			return err
		}
		if chosen(key) {
			keys = append(keys, key)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(deletesAtOnce)
	for _, key := range keys {
		group.Go(func() error { return l.store.Delete(ctx, key) })
	}
	return group.Wait()
}

// deletesAtOnce is the number of parts that are deleted concurrently.
const deletesAtOnce = 8
