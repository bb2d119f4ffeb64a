package artifacts

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxContent is the size up to which contents are in the manifest itself.
	maxContent = 64 << 10
	// boundary is the mean number of small files after which a chunk ends, if it is large enough: equal runs of files get
	// equal chunks, whatever precedes them.
	boundary = 4
)

// ErrNone is in the chain of the error of Save if no file matches.
var ErrNone = errors.New("nothing matches")

// Save stores the files below root that match a path, as in ArtifactOut.path, as an artifact whose manifest has the given key of
// storekey.Artifact. Files that have been stored are not sent again. The error is ErrNone, ErrInvalid, that of ctx, or one of
// the store, such as an ArtifactQuotaError.
func (l *Library) Save(ctx context.Context, key, name, from string, root *os.Root) (*v1.Artifact, error) {
	p := &packer{upload: l.newUpload(ctx, key), links: map[[2]uint64]string{}}
	defer p.upload.abort()
	folder, pattern, err := split(root, from)
	if err == nil {
		p.root, err = root.OpenRoot(folder)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w %s", ErrNone, from)
	}
	if err != nil {
		return nil, err
	}
	defer p.root.Close()
	p.pattern = pattern
	matched, err := p.addFolder(".", false)
	if err == nil && !matched && pattern != everything {
		err = fmt.Errorf("%w %s", ErrNone, from)
	}
	if err != nil {
		p.upload.forget(context.WithoutCancel(ctx))
		return nil, err
	}
	a, err := p.finish(ctx, key, name)
	if _, isFull := errors.AsType[*store.ArtifactQuotaError](err); isFull {
		p.upload.forget(context.WithoutCancel(ctx))
	}
	return a, err
}

// SaveNone stores an empty artifact.
func (l *Library) SaveNone(ctx context.Context, key, name string) (*v1.Artifact, error) {
	p := &packer{upload: l.newUpload(ctx, key)}
	defer p.upload.abort()
	return p.finish(ctx, key, name)
}

// everything is the pattern of a whole folder, which may be empty.
const everything = "**"

// split returns the folder that a path starts from, and a pattern for what is below it.
func split(root *os.Root, name string) (folder, pattern string, err error) {
	name = path.Clean(name)
	if folder, pattern = doublestar.SplitPattern(name); strings.ContainsAny(name, `*?[{\`) {
		return folder, pattern, nil
	}
	info, err := root.Stat(name)
	if err == nil && info.IsDir() {
		return name, everything, nil
	}
	return folder, pattern, err
}

// packer reads files into an upload.
type packer struct {
	upload  *upload
	root    *os.Root
	pattern string
	tree    v1.ArtifactTree
	// links has the first name of each file with several hard links.
	links map[[2]uint64]string
	size  int64
	files int32
	chunk []byte
	// ignored says which files stay behind, or is nil.
	ignored *ignored
	// commit is that of the files, and the first to store a manifest with a commit decides for all; see SaveCommit.
	commit string
}

// addFolder adds what matches in a folder and below it. It reports whether anything does.
func (p *packer) addFolder(name string, included bool) (matched bool, err error) {
	f, err := p.root.Open(name)
	if err != nil {
		return false, err
	}
	entries, err := f.ReadDir(-1)
	_ = f.Close()
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	leave, err := p.ignored.enter(p.root, name)
	if err != nil {
		return false, err
	}
	defer leave()
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, entry := range entries {
		if err := p.upload.ctx.Err(); err != nil {
			return false, err
		}
		child := path.Join(name, entry.Name())
		takes := included || doublestar.MatchUnvalidated(p.pattern, child)
		if !takes && !entry.IsDir() || p.ignored.leavesOut(child, entry.IsDir()) {
			continue
		}
		added, err := p.add(child, takes)
		if err != nil {
			return false, err
		}
		matched = matched || added
	}
	return matched, nil
}

// add adds a file, or what matches in a folder. It reports whether anything does.
func (p *packer) add(name string, included bool) (matched bool, err error) {
	info, err := p.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !utf8.ValidString(name) {
		return false, invalid("the name %s is not UTF-8; rename it", shown(name))
	}
	if len(p.tree.Entries) == MaxEntries {
		return false, invalid("it has more than %d files; pack them into one, such as a tar archive", MaxEntries)
	}
	e := &v1.ArtifactEntry{Path: name, Mode: uint32(info.Mode().Perm()), ModifiedNs: info.ModTime().UnixNano()}
	switch mode := info.Mode(); {
	case mode.IsDir():
		e.Kind = v1.ArtifactEntry_KIND_FOLDER
		at := len(p.tree.Entries)
		p.tree.Entries = append(p.tree.Entries, e)
		if matched, err = p.addFolder(name, included); err == nil && !matched && !included {
			p.tree.Entries = p.tree.Entries[:at]
		}
		return matched || included, err
	case mode&fs.ModeSymlink != 0:
		e.Kind, e.Mode = v1.ArtifactEntry_KIND_SYMLINK, 0
		e.Target, err = p.root.Readlink(name)
		if err == nil && !utf8.ValidString(e.Target) {
			err = invalid("%s is a link to %s, which is not UTF-8; rename it", shown(name), shown(e.Target))
		}
		if err == nil {
			err = checkLink(name, e.Target)
		}
	case !mode.IsRegular():
		err = invalid("%s is neither a file, a folder nor a link", shown(name))
	default:
		err = p.addFile(e, info)
	}
	p.tree.Entries = append(p.tree.Entries, e)
	return true, err
}

// addFile adds a file with its content.
func (p *packer) addFile(e *v1.ArtifactEntry, info fs.FileInfo) error {
	id, linked := inodeOf(info)
	if first, again := p.links[id]; linked && again {
		e.Kind, e.Target = v1.ArtifactEntry_KIND_HARD_LINK, first
		return nil
	}
	if linked {
		p.links[id] = e.GetPath()
	}
	f, err := p.root.Open(e.GetPath())
	if err != nil {
		return err
	}
	defer f.Close()
	large := info.Size() >= newChunk
	if large {
		p.flush()
	}
	for {
		if p.chunk == nil {
			if p.chunk, err = p.upload.buffer(); err != nil {
				return err
			}
		}
		n, err := io.ReadFull(f, p.chunk[len(p.chunk):cap(p.chunk)])
		p.chunk = p.chunk[:len(p.chunk)+n]
		e.Size += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", e.GetPath(), err)
		}
		p.flush()
	}
	if large || len(p.chunk) >= minChunk && endsChunk(e.GetPath()) {
		p.flush()
	}
	p.size, p.files = p.size+e.GetSize(), p.files+1
	return nil
}

// endsChunk reports whether a chunk that is large enough ends after a file.
func endsChunk(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()%boundary == 0
}

// flush passes the current chunk to the upload.
func (p *packer) flush() {
	if len(p.chunk) > 0 {
		p.upload.add(p.chunk)
		p.chunk = nil
	}
}

// finish waits for the upload and stores the manifest.
func (p *packer) finish(ctx context.Context, key, name string) (*v1.Artifact, error) {
	tree, err := proto.MarshalOptions{Deterministic: true}.Marshal(&p.tree)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	m := &v1.ArtifactManifest{
		Artifact: &v1.Artifact{Name: name, Size: p.size, Files: p.files, Commit: p.commit},
		Tree:     encoder().EncodeAll(tree, nil), StoredAt: timestamppb.New(now),
	}
	if keep := p.upload.library.Keep; keep > 0 {
		m.Artifact.ExpiresAt = timestamppb.New(now.Add(keep))
	}
	if p.size <= maxContent {
		m.Content = encoder().EncodeAll(p.chunk, nil)
		p.upload.put(p.chunk)
	} else {
		p.flush()
		if m.Chunks, m.ChunkSizes, err = p.upload.wait(); err != nil {
			return nil, err
		}
	}
	m.Artifact.Digest = digestOfTree(&p.tree, m)
	var value proto.Message = m
	if p.ignored != nil {
		value = &v1.SourceUpload{Manifest: m, Proofs: p.upload.proofs}
	}
	put := p.upload.library.Store.PutMessage
	if p.commit != "" {
		put = func(ctx context.Context, key string, m proto.Message) error {
			_, err := p.upload.library.Store.PutMessageIfAbsent(ctx, key, m)
			return err
		}
	}
	if err := p.upload.library.retry(ctx, func() error { return put(ctx, key, value) }); err != nil {
		return nil, err
	}
	a := proto.CloneOf(m.GetArtifact())
	a.Manifest = key
	return a, nil
}
