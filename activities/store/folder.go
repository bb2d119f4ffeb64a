package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob/fileblob"
)

// folder keeps values in the files of a folder, which several processes may
// share.
type folder struct {
	bucket
	dir string
}

var _ backend = (*folder)(nil)

// temporary is how the names of files end that a writer to a folder has not
// finished; a writer that is killed leaves such a file behind.
const temporary = ".tmp"

func openFolder(dir string) (*folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", dir, err)
	}
	files, err := fileblob.OpenBucket(dir, &fileblob.Options{
		CreateDir: true,
		// Without it, each value has a second file of attributes that nobody reads.
		Metadata: fileblob.MetadataDontWrite,
		// A file cannot be renamed into place from another file system.
		NoTempDir: true,
	})
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", dir, err)
	}
	return &folder{bucket{Bucket: files, url: dir}, dir}, nil
}

// putIfAbsent links a finished file to its name, which succeeds for one of all
// the processes that try; the bucket would look first and rename then.
func (f *folder) putIfAbsent(ctx context.Context, key string, value []byte) (existed bool, err error) {
	// What the bucket would escape in the name of the file is in no key of keys.go.
	if err := CheckKey(key); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	path := f.path(key)
	if _, err := os.Lstat(path); err == nil {
		return true, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return false, err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+temporary)
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // keys leaves out what stays behind
	_, err = temp.Write(value)
	// CreateTemp keeps the file from others, who share the folder.
	if err := errors.Join(err, temp.Chmod(0o644), temp.Close()); err != nil {
		return false, err
	}
	err = os.Link(temp.Name(), path)
	if errors.Is(err, fs.ErrExist) {
		return true, nil
	}
	return false, err
}

func (f *folder) path(key string) string { return filepath.Join(f.dir, filepath.FromSlash(key)) }

// keys reads directories in the order of keys. The bucket would look at each
// file, walk the folder anew for every thousand, and lose some of them: in the
// order of directories "a" comes before "a-b", in that of keys "a-b/" before "a/".
func (f *folder) keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
		if dir != "" && !filepath.IsLocal(filepath.FromSlash(dir)) {
			yield("", fmt.Errorf("%q is outside of the store", prefix))
			return
		}
		f.list(ctx, dir, prefix, yield)
	}
}

// list yields the keys of a directory, "" or one with a slash at its end, and of
// those below it, and says whether to go on.
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
		if key := dir + name; strings.HasPrefix(key, prefix) && !strings.HasSuffix(key, temporary) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasSuffix(name, "/") {
			if !f.list(ctx, dir+name, prefix, yield) {
				return false
			}
		} else if !yield(dir+name, nil) {
			return false
		}
	}
	return true
}

// runs reads one directory; the bucket would look at every file of every run.
func (f *folder) runs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		entries, err := os.ReadDir(f.path(runsPrefix))
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
	err = filepath.WalkDir(f.path(RunPrefix(run)), func(_ string, entry fs.DirEntry, err error) error {
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

// deleteRun removes the folder of a run; the bucket would leave the directories
// behind, and look at each of the files anew for every thousand.
func (f *folder) deleteRun(_ context.Context, run string) error {
	return os.RemoveAll(f.path(RunPrefix(run)))
}
