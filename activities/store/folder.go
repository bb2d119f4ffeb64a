package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"

	"switchyard/activities/store/storekey"
)

// folder stores values in the files of a folder, which several processes of one user may share. Logs and results contain
// task output, so other users of the machine, including sandboxed tasks, cannot read anything in it.
type folder struct {
	directory
	// appends is set if concurrent appends to a file of this folder by several processes end up in it whole, one after
	// another.
	appends  bool
	journals journals
}

var _ backend = (*folder)(nil)

// A run's directories also contain files that are not values: the run's journal, and files that journal entries refer to.
// No key has a segment with these names.
const (
	journalName  = "~journal"
	elsewhereTag = "~"
)

func openFolder(dir string) (*folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", dir, err)
	}
	if err := os.MkdirAll(dir, dirMode); errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("open store %q: it is not a directory", dir)
	} else if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	f := &folder{directory: directory{dir: dir}, appends: appendsWhole(dir)}
	if err := f.mark(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return f, nil
}

// put stores a value in a file. If the folder is away, it fails rather than storing the value in its place.
func (f *folder) put(ctx context.Context, key string, value []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.present(); err != nil {
		return err
	}
	path := f.path(key)
	temp, err := f.writeTemporary(path, value)
	if err != nil {
		return withoutPath(err)
	}
	if err := os.Rename(temp, path); err != nil {
		_ = os.Remove(temp) // if this fails, keys skips the file
		return withoutPath(err)
	}
	return nil
}

// get returns the value of a key. It returns ErrNotFound only if the folder is present.
func (f *folder) get(ctx context.Context, key string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.closed.Load() {
		return nil, errFolderClosed
	}
	value, err := f.find(key)
	if errors.Is(err, ErrNotFound) {
		if away := f.present(); away != nil {
			return nil, away
		}
	}
	return value, err
}

// find returns the value of a key. It looks for a file first: a value that was put unconditionally is newer than the one
// in the journal.
func (f *folder) find(key string) ([]byte, error) {
	value, err := readFile(f.path(key))
	run, rest, keyErr := storekey.SplitRun(key)
	if !errors.Is(err, ErrNotFound) || keyErr != nil {
		return value, err
	}
	j := f.journals.of(f, run)
	defer j.mu.Unlock()
	s, ok, err := j.find(rest)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrNotFound
	}
	if value, err = j.value(s); err != nil || s.kind == valueEntry {
		return value, err
	}
	return readFile(filepath.Join(filepath.Dir(f.path(key)), filepath.Base(string(value))))
}

// putIfAbsent appends a value to the journal of its run, or the name of its file if the value is large. Creating a file
// for each small value would cost more than a short task does.
func (f *folder) putIfAbsent(ctx context.Context, key string, value []byte) (existed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := f.present(); err != nil {
		return false, err
	}
	if storekey.IsOfNoRun(key) { // and therefore has no journal
		return f.link(f.path(key), value)
	}
	// Keys of package storekey contain nothing that a bucket would escape in file names.
	if err := storekey.Check(key); err != nil {
		return false, err
	}
	defer func() { err = withoutPath(err) }()
	path := f.path(key)
	if _, err := os.Lstat(path); err == nil {
		return true, nil
	}
	run, rest, err := storekey.SplitRun(key)
	if err != nil {
		return false, err
	}
	j := f.journals.of(f, run)
	defer j.mu.Unlock()
	if _, existed, err = j.find(rest); existed || err != nil {
		return existed, err
	}
	// A log has many chunks, and a journal is always read as a whole.
	if _, _, isLog := storekey.ParseLogChunk(key); isLog || !f.appends {
		return f.link(path, value)
	}
	if err := f.makeDir(filepath.Dir(j.path)); err != nil {
		return false, err
	}
	writer := rand.Uint64()
	if len(value) <= maxEntryBytes {
		return j.add(writer, valueEntry, rest, value)
	}
	if err := f.makeDir(filepath.Dir(path)); err != nil {
		return false, err
	}
	elsewhere := fmt.Sprintf("%s%s%016x", path, elsewhereTag, writer)
	err = os.WriteFile(elsewhere, value, fileMode)
	if err == nil {
		existed, err = j.add(writer, fileEntry, rest, []byte(filepath.Base(elsewhere)))
	}
	if existed || err != nil {
		_ = os.Remove(elsewhere) // if this fails, keys skips the file
	}
	return existed, err
}

func (f *folder) findChunks(ctx context.Context, digests [][]byte) ([]bool, error) {
	if err := f.present(); err != nil {
		return nil, err
	}
	return findChunks(ctx, f, digests, func(key string) (bool, error) {
		info, err := os.Lstat(f.path(key))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil && info.Size() > 0, withoutPath(err) // a crash of the machine may leave an empty file
	})
}

// deleteRun removes the directory of a run.
func (f *folder) deleteRun(_ context.Context, run string) error {
	f.journals.forget(run)
	return os.RemoveAll(f.path(storekey.RunPrefix(run)))
}

// delete also removes the directories of the value that become empty.
func (f *folder) delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.present(); err != nil {
		return err
	}
	path := f.path(key)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return withoutPath(err)
	}
	for dir := filepath.Dir(path); dir != f.dir && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
	}
	return nil
}

func (f *folder) location() string { return f.dir }

func (f *folder) close() error {
	f.closed.Store(true)
	f.journals.close()
	return nil
}
