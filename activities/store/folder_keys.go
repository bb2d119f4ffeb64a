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

	"switchyard/activities/store/storekey"
)

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
			yield("", fmt.Errorf("%q is outside the store", prefix))
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
