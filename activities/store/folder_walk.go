package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"switchyard/activities/store/storekey"
)

// walk calls visit for each file in the directory of a prefix and below it. It skips files that are removed meanwhile.
func (d *directory) walk(ctx context.Context, prefix string, visit func(path string, info fs.FileInfo) error) error {
	return filepath.WalkDir(d.path(prefix), func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && !entry.IsDir() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				err = visit(path, info)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it does not exist or has been removed meanwhile
		}
		return err
	})
}

func (f *folder) newest(ctx context.Context, run string) (newest time.Time, err error) {
	err = f.walk(ctx, storekey.RunPrefix(run), func(_ string, info fs.FileInfo) error {
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	return newest, err
}

// size adds up the files of a directory. It ignores values in journals, which contain no logs.
func (f *folder) size(ctx context.Context, prefix string) (bytes int64, err error) {
	err = f.walk(ctx, prefix, func(_ string, info fs.FileInfo) error {
		bytes += info.Size()
		return nil
	})
	return bytes, withoutPath(err)
}

// deleteOlder checks the time of each file once.
func (f *folder) deleteOlder(ctx context.Context, prefix string, before time.Time) (removed int, err error) {
	err = f.walk(ctx, prefix, func(path string, info fs.FileInfo) error {
		if !info.ModTime().Before(before) {
			return nil
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		removed++
		return nil
	})
	return removed, err
}
