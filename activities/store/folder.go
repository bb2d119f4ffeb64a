package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"switchyard/activities/store/storekey"
)

// folder stores values in the files of a folder, which several processes of one user may share. Logs and results contain
// task output, so other users of the machine, including sandboxed tasks, cannot read anything in it.
type folder struct {
	dir string
	// appends is set if concurrent appends to a file of this folder by several processes end up in it whole, one after
	// another.
	appends  bool
	journals journals
	closed   atomic.Bool
}

var _ backend = (*folder)(nil)

// A run's directories also contain files that are not values: the run's journal, and files that journal entries refer to.
// No key has a segment with these names.
const (
	journalName  = "~journal"
	elsewhereTag = "~"
)

// Permissions of the folder's files and directories.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// makeDirTries is how often put tries to create the directory of a value.
const makeDirTries = 3

// markerName is the file that distinguishes the folder of a store from the empty folder in its place while its file
// system is away.
const markerName = "~store"

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
	f := &folder{dir: dir, appends: appendsWhole(dir)}
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

// writeTemporary writes a value to a new file next to path and returns the file's name.
func (f *folder) writeTemporary(path string, value []byte) (name string, err error) {
	dir, pattern := filepath.Dir(path), filepath.Base(path)+".*"+storekey.TemporarySuffix
	temp, err := os.CreateTemp(dir, pattern)
	// A concurrent delete may remove an empty directory at any time.
	for try := 0; errors.Is(err, fs.ErrNotExist) && try < makeDirTries; try++ {
		if err := f.makeDir(dir); err != nil {
			return "", err
		}
		temp, err = os.CreateTemp(dir, pattern)
	}
	if err != nil {
		return "", err
	}
	_, err = temp.Write(value)
	if err := errors.Join(err, temp.Close()); err != nil {
		_ = os.Remove(temp.Name()) // if this fails, keys skips the file
		return "", err
	}
	return temp.Name(), nil
}

// makeDir creates a directory inside the folder with its parents, but never the folder itself. The folder may have gone
// away since the last check; a value stored in its place would be lost when it comes back.
func (f *folder) makeDir(dir string) error {
	above := filepath.Dir(dir)
	if above == f.dir {
		if err := f.present(); err != nil {
			return err
		}
	}
	err := os.Mkdir(dir, dirMode)
	if errors.Is(err, fs.ErrNotExist) && above != f.dir {
		if err := f.makeDir(above); err != nil {
			return err
		}
		err = os.Mkdir(dir, dirMode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// readFile returns the content of a file, or ErrNotFound if there is none.
func readFile(path string) ([]byte, error) {
	value, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR) {
		return nil, ErrNotFound
	}
	return value, withoutPath(err)
}

// withoutPath removes the store's path from an error, which clients of a gateway may see. The Store adds the key.
func withoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", at.Op, at.Err)
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return fmt.Errorf("%s: %w", at.Op, at.Err)
	}
	return err
}

// mark creates the marker if there is none.
func (f *folder) mark() error {
	file, err := os.OpenFile(f.path(markerName), os.O_CREATE|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	return file.Close()
}

// errFolderAway is the error of a folder without its marker. It is deliberately not ErrNotFound.
var errFolderAway = errors.New("the folder is away: it has no file " + markerName)

// errFolderClosed is the error of a folder after close.
var errFolderClosed = errors.New("the store is closed")

// present returns an error if the folder is not the one that was opened, or has been closed.
func (f *folder) present() error {
	if f.closed.Load() {
		return errFolderClosed
	}
	switch _, err := os.Lstat(f.path(markerName)); {
	case errors.Is(err, fs.ErrNotExist):
		return errFolderAway
	case err != nil:
		return err
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

// link links a complete file to its name, which succeeds for only one of several concurrent processes.
func (f *folder) link(path string, value []byte) (existed bool, err error) {
	temp, err := f.writeTemporary(path, value)
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(temp) }() // if this fails, keys skips the file
	err = os.Link(temp, path)
	if errors.Is(err, fs.ErrExist) {
		return true, nil
	}
	return false, err
}

func (f *folder) path(key string) string { return filepath.Join(f.dir, filepath.FromSlash(key)) }

// keys yields the keys that start with prefix. It reads directories in the order of keys: directory "a" sorts before
// "a-b", but key "a-b/" sorts before "a/".
func (f *folder) keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := f.present(); err != nil {
			yield("", err)
			return
		}
		dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
		if dir != "" && !filepath.IsLocal(filepath.FromSlash(dir)) {
			yield("", fmt.Errorf("%q is outside of the store", prefix))
			return
		}
		if run, _, err := storekey.SplitRun(prefix); err == nil {
			f.listRun(ctx, run, dir, prefix, yield)
		} else {
			f.list(ctx, dir, prefix, yield)
		}
	}
}

// listRun yields the keys of a run that start with prefix, from its files below dir and from its journal. It reports
// whether to continue.
func (f *folder) listRun(ctx context.Context, run, dir, prefix string, yield func(string, error) bool) bool {
	appended, err := f.appended(run, prefix)
	if err != nil {
		yield("", err)
		return false
	}
	more := f.list(ctx, dir, prefix, func(key string, err error) bool {
		for ; err == nil && len(appended) > 0 && appended[0] <= key; appended = appended[1:] {
			if appended[0] < key && !yield(appended[0], nil) {
				return false
			}
		}
		return yield(key, err)
	})
	for _, key := range appended {
		more = more && yield(key, nil)
	}
	return more
}

// appended returns the keys in a run's journal that start with prefix, in order.
func (f *folder) appended(run, prefix string) (keys []string, err error) {
	j := f.journals.of(f, run)
	defer j.mu.Unlock()
	if err := j.catchUp(); err != nil {
		return nil, err
	}
	for rest := range j.index {
		if key := storekey.RunPrefix(run) + rest; strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// list yields the keys in a directory and below it. dir is "" or ends with a slash. It reports whether to continue.
func (f *folder) list(ctx context.Context, dir, prefix string, yield func(string, error) bool) bool {
	if err := ctx.Err(); err != nil {
		yield("", err)
		return false
	}
	entries, err := os.ReadDir(f.path(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		yield("", err)
		return false
	}
	var names []string
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() {
			name += "/"
		}
		if key := dir + name; strings.HasPrefix(key, prefix) && !strings.HasSuffix(key, storekey.TemporarySuffix) && !strings.Contains(name, elsewhereTag) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if run, ok := strings.CutSuffix(name, "/"); ok && dir == storekey.RunsPrefix {
			if !f.listRun(ctx, run, dir+name, prefix, yield) {
				return false
			}
		} else if ok {
			if !f.list(ctx, dir+name, prefix, yield) {
				return false
			}
		} else if !yield(dir+name, nil) {
			return false
		}
	}
	return true
}

// runs reads only one directory.
func (f *folder) runs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := f.present(); err != nil {
			yield("", err)
			return
		}
		entries, err := os.ReadDir(f.path(storekey.RunsPrefix))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield("", err)
			return
		}
		for _, entry := range entries {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			if entry.IsDir() && !yield(entry.Name(), nil) {
				return
			}
		}
	}
}

func (f *folder) newest(ctx context.Context, run string) (newest time.Time, err error) {
	err = filepath.WalkDir(f.path(storekey.RunPrefix(run)), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && !entry.IsDir() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil && info.ModTime().After(newest) {
				newest = info.ModTime()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has been removed meanwhile
		}
		return err
	})
	return newest, err
}

// size adds up the files of a directory. It ignores values in journals, which contain no logs.
func (f *folder) size(ctx context.Context, prefix string) (bytes int64, err error) {
	err = filepath.WalkDir(f.path(prefix), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && !entry.IsDir() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				bytes += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it does not exist or has been removed meanwhile
		}
		return err
	})
	return bytes, withoutPath(err)
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

// deleteOlder checks the time of each file once.
func (f *folder) deleteOlder(ctx context.Context, prefix string, before time.Time) (removed int, err error) {
	err = filepath.WalkDir(f.path(prefix), func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && !entry.IsDir() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil && info.ModTime().Before(before) {
				if err = os.Remove(path); err == nil {
					removed++
				}
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it does not exist or has been removed meanwhile
		}
		return err
	})
	return removed, err
}

func (f *folder) location() string { return f.dir }

func (f *folder) close() error {
	f.closed.Store(true)
	f.journals.close()
	return nil
}
