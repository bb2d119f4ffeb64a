package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sync/errgroup"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// loadsAtOnce is the number of chunks that are fetched and written concurrently.
const loadsAtOnce = 4

// Load creates the files of an artifact in a folder below root, which is created if necessary. Existing files of the same names are
// replaced, unless they are folders. After an error some of the files are missing. The error is ErrInvalid, store.ErrNotFound if
// the artifact was removed, that of ctx, or one of the store or the file system.
func (l *Library) Load(ctx context.Context, a *v1.Artifact, root *os.Root, folder string) error {
	m, err := l.manifest(ctx, a)
	if err != nil {
		return err
	}
	return l.unpack(ctx, m, root, path.Clean(folder))
}

// segment is the part of a file that a chunk holds.
type segment struct {
	entry *v1.ArtifactEntry
	// at is the position in the file, and from the one in the chunk.
	at, from, bytes int64
}

// isWhole reports whether the segment is the whole file.
func (s segment) isWhole() bool { return s.bytes == s.entry.GetSize() }

// isPrepared reports whether the file of one of the segments of a chunk is created before its contents are there. All others are
// small files that share a chunk.
func isPrepared(s segment, parts []segment) bool { return len(parts) == 1 || !s.isWhole() }

// segments returns, for each chunk, the parts of files that are in it.
func segments(tree *v1.ArtifactTree, sizes []int32) [][]segment {
	all := make([][]segment, len(sizes))
	n, used := 0, int64(0)
	for _, e := range tree.GetEntries() {
		for at := int64(0); at < e.GetSize(); {
			bytes := min(e.GetSize()-at, int64(sizes[n])-used)
			all[n] = append(all[n], segment{e, at, used, bytes})
			at += bytes
			if used += bytes; used == int64(sizes[n]) {
				n, used = n+1, 0
			}
		}
	}
	return all
}

// unpacker creates the files of an artifact.
type unpacker struct {
	library *Library
	root    *os.Root
	// unfinished are the files without their modes and times.
	unfinished []*v1.ArtifactEntry
}

func (l *Library) unpack(ctx context.Context, m *v1.ArtifactManifest, root *os.Root, folder string) error {
	tree, err := readTree(m)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	u := unpacker{library: l}
	if u.root, err = root.OpenRoot(folder); err != nil {
		return err
	}
	defer u.root.Close()
	sizes, plain := m.GetChunkSizes(), []byte(nil)
	if content := m.GetContent(); len(content) > 0 {
		if plain, err = chunkDecoder().DecodeAll(content, nil); err != nil {
			return err
		}
		sizes = []int32{int32(len(plain))}
	}
	all := segments(tree, sizes)
	if err := u.prepare(tree, all); err != nil {
		return err
	}
	if len(m.GetContent()) > 0 {
		err = u.write(all[0], plain)
	} else {
		err = u.writeChunks(ctx, m, all)
	}
	if err != nil {
		return err
	}
	return u.finish(tree)
}

// prepare creates the folders, and the files that are empty or that isPrepared reports.
func (u *unpacker) prepare(tree *v1.ArtifactTree, all [][]segment) error {
	for _, e := range tree.GetEntries() {
		switch e.GetKind() {
		case v1.ArtifactEntry_KIND_FOLDER:
			err := u.root.Mkdir(e.GetPath(), 0o700)
			if err == nil {
				continue
			}
			if !errors.Is(err, fs.ErrExist) {
				return err
			}
			info, err := u.root.Lstat(e.GetPath())
			if err != nil || !info.IsDir() {
				return errors.Join(err, fmt.Errorf("%s already exists and is not a folder", shown(e.GetPath())))
			}
			if err := u.root.Chmod(e.GetPath(), info.Mode().Perm()|0o700); err != nil {
				return err
			}
		case v1.ArtifactEntry_KIND_UNSPECIFIED:
			if e.GetSize() == 0 {
				u.unfinished = append(u.unfinished, e)
			}
		}
	}
	for _, parts := range all {
		for _, s := range parts {
			if s.at == 0 && isPrepared(s, parts) {
				u.unfinished = append(u.unfinished, s.entry)
			}
		}
	}
	for _, e := range u.unfinished {
		f, err := create(u.root, e.GetPath())
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// create creates a file in the place of any that exists.
func create(root *os.Root, name string) (*os.File, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := root.OpenFile(name, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if err = root.Remove(name); err == nil {
			f, err = root.OpenFile(name, flags, 0o600)
		}
	}
	return f, err
}

// writeChunks fetches the chunks and writes what they hold.
func (u *unpacker) writeChunks(ctx context.Context, m *v1.ArtifactManifest, all [][]segment) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(loadsAtOnce)
	for i, parts := range all {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			defer u.library.progress()
			digest := m.GetChunks()[i]
			if len(parts) == 1 {
				if f := u.library.Cache.open(digest); f != nil {
					defer f.Close()
					return u.copyFrom(parts[0], f)
				}
			}
			content, err := u.library.chunk(ctx, digest)
			if err != nil {
				return err
			}
			if len(content) != int(m.GetChunkSizes()[i]) {
				return invalid("chunk %x has %d bytes instead of %d", digest, len(content), m.GetChunkSizes()[i])
			}
			return u.write(parts, content)
		})
	}
	return group.Wait()
}

// chunk returns the content of a chunk, from the cache or the store.
func (l *Library) chunk(ctx context.Context, digest []byte) (content []byte, err error) {
	return l.Cache.get(digest, func() (content []byte, err error) {
		var value []byte
		err = l.retry(ctx, func() (err error) { value, err = l.Store.Get(ctx, storekey.Chunk(digest)); return err })
		if err != nil {
			return nil, err
		}
		if content, err = decodeChunk(digest, value); err != nil {
			return nil, invalid("chunk %x is damaged: %v", digest, err)
		}
		return content, nil
	})
}

// open opens the file of a segment for writing at the position of the segment.
func (u *unpacker) open(s segment) (*os.File, error) {
	f, err := u.root.OpenFile(s.entry.GetPath(), os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(s.at, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// write writes the segments of a chunk.
func (u *unpacker) write(parts []segment, content []byte) (err error) {
	// Each folder is opened once, which saves most of the system calls of small files.
	folder, name := u.root, "."
	defer func() {
		if folder != u.root {
			err = errors.Join(err, folder.Close())
		}
	}()
	for _, s := range parts {
		content := content[s.from : s.from+s.bytes]
		if isPrepared(s, parts) {
			f, err := u.open(s)
			if err == nil {
				_, err = f.Write(content)
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				return err
			}
			continue
		}
		if parent := path.Dir(s.entry.GetPath()); parent != name {
			next, err := u.root.OpenRoot(parent)
			if err != nil {
				return err
			}
			if folder != u.root {
				_ = folder.Close()
			}
			folder, name = next, parent
		}
		if err := writeFile(folder, s.entry, content); err != nil {
			return err
		}
	}
	return nil
}

// writeFile creates a file in its folder.
func writeFile(folder *os.Root, e *v1.ArtifactEntry, content []byte) error {
	name := path.Base(e.GetPath())
	f, err := create(folder, name)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(modeOf(e))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	at := time.Unix(0, e.GetModifiedNs())
	return folder.Chtimes(name, at, at)
}

// copyFrom writes a segment that is the whole of a cached chunk. Where the file system can, the two share the space.
func (u *unpacker) copyFrom(s segment, cached *os.File) error {
	f, err := u.open(s)
	if err != nil {
		return err
	}
	n, err := f.ReadFrom(cached)
	if err == nil && n != s.bytes {
		err = fmt.Errorf("the cached chunk of %s has %d bytes instead of %d", s.entry.GetPath(), n, s.bytes)
	}
	return errors.Join(err, f.Close())
}

// finish creates the links and sets modes and times, those of folders last.
func (u *unpacker) finish(tree *v1.ArtifactTree) error {
	for _, e := range u.unfinished {
		if err := u.setTraits(e); err != nil {
			return err
		}
	}
	entries := tree.GetEntries()
	for _, e := range entries {
		var err error
		switch e.GetKind() {
		case v1.ArtifactEntry_KIND_SYMLINK:
			err = u.link(e, func() error { return u.root.Symlink(e.GetTarget(), e.GetPath()) })
		case v1.ArtifactEntry_KIND_HARD_LINK:
			err = u.link(e, func() error { return u.root.Link(e.GetTarget(), e.GetPath()) })
		}
		if err != nil {
			return err
		}
	}
	for i := len(entries) - 1; i >= 0; i-- {
		if e := entries[i]; e.GetKind() == v1.ArtifactEntry_KIND_FOLDER {
			if err := u.setTraits(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// setTraits sets the time and the mode of a file or folder.
func (u *unpacker) setTraits(e *v1.ArtifactEntry) error {
	at := time.Unix(0, e.GetModifiedNs())
	if err := u.root.Chtimes(e.GetPath(), at, at); err != nil {
		return err
	}
	return u.root.Chmod(e.GetPath(), modeOf(e))
}

func modeOf(e *v1.ArtifactEntry) fs.FileMode { return fs.FileMode(e.GetMode()) & fs.ModePerm }

// link creates a link in the place of any file that exists.
func (u *unpacker) link(e *v1.ArtifactEntry, create func() error) error {
	err := create()
	if errors.Is(err, fs.ErrExist) {
		if err = u.root.Remove(e.GetPath()); err == nil {
			err = create()
		}
	}
	return err
}
