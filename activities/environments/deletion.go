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

// archiveOf returns the archive of a copy.
func archiveOf(stored string) string {
	archive, _, _ := strings.Cut(stored, "/")
	return archive
}

// DeleteArchive ends the reservation of an archive, and deletes what is stored of it. One that an environment has stays.
func (l *Library) DeleteArchive(ctx context.Context, archive string) error {
	archive = archiveOf(archive)
	if !storekey.IsEnvironmentArchive(archive) {
		return nil
	}
	if err := l.store.DeleteEnvironmentValue(ctx, storekey.EnvironmentOwner(archive)); err != nil {
		return err
	}
	kept, err := l.List(ctx)
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

// Clean deletes archives that no environment has, and that are not reserved or were reserved before a time. It returns how many they
// were.
func (l *Library) Clean(ctx context.Context, before time.Time) (removed int, err error) {
	archives, err := l.archives(ctx)
	if err != nil {
		return 0, err
	}
	archives, err = l.withoutOwner(ctx, archives, before)
	if err != nil || len(archives) == 0 {
		return 0, err
	}
	// After the owners: an archive is named before its reservation ends.
	kept, err := l.List(ctx)
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

// archives returns the archives that have values in the store, sorted.
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

// withoutOwner returns those of some archives that are not reserved, or were reserved before a time.
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

// deleteBelow deletes all that is stored of an archive.
func (l *Library) deleteBelow(ctx context.Context, archive string) error {
	return l.deleteIf(ctx, archive, func(string) bool { return true })
}

// deleteIf deletes what is stored of an archive under keys that a function chooses.
func (l *Library) deleteIf(ctx context.Context, archive string, chosen func(key string) bool) error {
	if !storekey.IsEnvironmentArchive(archive) {
		return nil
	}
	// The list is read first: a bucket may leave out keys when others are deleted meanwhile.
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
		group.Go(func() error { return l.store.DeleteEnvironmentValue(ctx, key) })
	}
	return group.Wait()
}

// deletesAtOnce is how many parts are deleted side by side.
const deletesAtOnce = 8
