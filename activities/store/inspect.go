package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gocloud.dev/blob"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// Inspection is what a store holds that distinguishes it from others.
type Inspection struct {
	// Location is the location with which Open opens the store. A folder has an absolute path.
	Location string
	// IsStore is set if a process has opened the place as a store. IsEmpty is set if the place holds nothing.
	IsStore, IsEmpty bool
	// Identity is the text that Store.Identity returns, or "" if the store has none yet.
	Identity string
	// Claim says whose the store is. It is zero if the store has no owner yet, or is a gateway.
	Claim Claim
	// LevelErr is a *historyv1.NewerDataError if this program would misread values of the store, or nil.
	LevelErr error
}

// Inspect reads what distinguishes the store at a location from others, and changes nothing: it neither creates a store
// nor claims one. The error is fs.ErrNotExist if there is no such folder.
func Inspect(ctx context.Context, location string, o Options) (Inspection, error) {
	seen := Inspection{Location: location}
	err := seen.read(ctx, o)
	if err != nil {
		err = fmt.Errorf("inspect store %s: %w", seen.Location, err)
	}
	return seen, err
}

func (i *Inspection) read(ctx context.Context, o Options) error {
	if dir, isFolder := FolderOf(i.Location); isFolder {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		i.Location = dir
		return i.readFolder(&directory{dir: dir})
	}
	b, err := openBackend(ctx, i.Location, o)
	if err != nil {
		return err
	}
	defer b.close()
	switch b := b.(type) {
	case *remote:
		i.IsStore = true
		if i.Identity, err = b.ensure(ctx, IdentityKey, ""); err != nil { // which stores nothing: a gateway has a store with an identity
			return err
		}
		return i.addLevel(checkLevel(ctx, b))
	case *bucket:
		return i.readBucket(ctx, b)
	}
	return fmt.Errorf("%T has no identity to inspect", b)
}

func (i *Inspection) readBucket(ctx context.Context, b *bucket) error {
	_, err := b.List(&blob.ListOptions{}).Next(ctx)
	if errors.Is(err, io.EOF) {
		i.IsEmpty = true
		return nil
	}
	if err != nil {
		return err
	}
	err = i.readTexts(func(key string) ([]byte, error) { return b.get(ctx, key) })
	i.IsStore = i.Identity != "" || i.Claim != Claim{}
	return err
}

func (i *Inspection) readFolder(d *directory) error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	i.IsEmpty = len(entries) == 0
	err = d.present()
	if err != nil && !errors.Is(err, errFolderAway) {
		return err
	}
	i.IsStore = err == nil
	return i.readTexts(func(key string) ([]byte, error) { return readFile(d.path(key)) })
}

// addLevel adds the outcome of the check of the data level.
func (i *Inspection) addLevel(err error) error {
	if _, isNewer := errors.AsType[*historyv1.NewerDataError](err); isNewer {
		i.LevelErr = err
		return nil
	}
	return err
}

// readTexts reads the identity, the claim and the data level.
func (i *Inspection) readTexts(get func(key string) ([]byte, error)) error {
	text := func(key string) (string, error) {
		value, err := get(key)
		if errors.Is(err, ErrNotFound) {
			return "", nil
		}
		return strings.TrimSpace(string(value)), err
	}
	identity, err := text(IdentityKey)
	if err != nil {
		return err
	}
	claim, err := text(ClaimKey)
	if err != nil {
		return err
	}
	i.Identity = identity
	if claim != "" {
		if i.Claim, err = parseClaim(claim); err != nil {
			return err
		}
	}
	return i.addLevel(checkLevelKeys(i.Location, get))
}
