package artifacts

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"sort"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

// ErrNoFile is in the chain of the error of OpenFile if the artifact has no such file.
var ErrNoFile = errors.New("not a file of the artifact")

// block is the unit of a tar archive, which ends with two of zeros.
const block = 512

// Reader reads an artifact as a tar archive, or one of its files. Of the contents it holds one chunk in memory. It is not safe for
// concurrent use.
type Reader struct {
	ctx     context.Context
	library *Library
	m       *v1.ArtifactManifest
	parts   []part
	size    int64
	at      int64

	header   []byte // of part headerOf
	headerOf int
	// ends has the end of each chunk in the joined contents, and content is that of chunk.
	ends    []int64
	content []byte
	chunk   int
}

// part is an entry in what a Reader reads: its header, its content, and zeros up to the next part.
type part struct {
	entry *v1.ArtifactEntry
	// start is the position of the part, and header the size of its header.
	start, header int64
	// content is the position of the file in the joined contents.
	content int64
}

// OpenTar opens an artifact as a tar archive with one folder, which has the name of the artifact. An artifact always gives the same
// archive. ctx bounds the use of the Reader. The error is as that of Load.
func (l *Library) OpenTar(ctx context.Context, a *v1.Artifact) (*Reader, error) {
	r, tree, err := l.openReader(ctx, a)
	if err != nil {
		return nil, err
	}
	entries := tree.GetEntries()
	if len(entries) == 0 || entries[0].GetPath() != "." {
		root := &v1.ArtifactEntry{Path: ".", Kind: v1.ArtifactEntry_KIND_FOLDER, Mode: 0o755, ModifiedNs: r.m.GetStoredAt().AsTime().UnixNano()}
		entries = append([]*v1.ArtifactEntry{root}, entries...)
	}
	content := int64(0)
	for _, e := range entries {
		header, err := r.headerFor(e)
		if err != nil {
			return nil, fmt.Errorf("artifact %s: %s: %w", a.GetName(), e.GetPath(), err)
		}
		r.parts = append(r.parts, part{e, r.size, int64(len(header)), content})
		r.size += int64(len(header)) + (e.GetSize()+block-1)/block*block
		content += e.GetSize()
	}
	r.size += 2 * block
	return r, nil
}

// OpenFile opens the file of an artifact with a path as in ArtifactEntry.path. The error is ErrNoFile, or as that of Load.
func (l *Library) OpenFile(ctx context.Context, a *v1.Artifact, name string) (*Reader, error) {
	r, tree, err := l.openReader(ctx, a)
	if err != nil {
		return nil, err
	}
	for entry, file := range files(tree) {
		if entry.GetPath() == name && entry.GetKind() != v1.ArtifactEntry_KIND_SYMLINK {
			r.parts, r.size = []part{file}, file.entry.GetSize()
			return r, nil
		}
	}
	return nil, fmt.Errorf("artifact %s: %q is %w", a.GetName(), name, ErrNoFile)
}

// Files returns the files and the symbolic links of an artifact in the order of the archive. The error is as that of Load.
func (l *Library) Files(ctx context.Context, a *v1.Artifact) ([]*v1.ArtifactFile, error) {
	_, tree, err := l.openReader(ctx, a)
	if err != nil {
		return nil, err
	}
	var all []*v1.ArtifactFile
	for entry, file := range files(tree) {
		one := &v1.ArtifactFile{Path: entry.GetPath(), Size: file.entry.GetSize(), ModifiedAt: timestamppb.New(time.Unix(0, file.entry.GetModifiedNs()))}
		if entry.GetKind() == v1.ArtifactEntry_KIND_SYMLINK {
			one.Target = entry.GetTarget()
		}
		all = append(all, one)
	}
	return all, nil
}

// files yields the files and links of a tree, each with the part that has its content. A hard link has that of its file.
func files(tree *v1.ArtifactTree) iter.Seq2[*v1.ArtifactEntry, part] {
	return func(yield func(*v1.ArtifactEntry, part) bool) {
		found := map[string]part{}
		content := int64(0)
		for _, e := range tree.GetEntries() {
			one := part{entry: e, content: content}
			switch e.GetKind() {
			case v1.ArtifactEntry_KIND_FOLDER:
				continue
			case v1.ArtifactEntry_KIND_HARD_LINK:
				one = found[e.GetTarget()]
			}
			found[e.GetPath()] = one
			content += e.GetSize()
			if !yield(e, one) {
				return
			}
		}
	}
}

// openReader returns a Reader without parts, and the tree of its artifact.
func (l *Library) openReader(ctx context.Context, a *v1.Artifact) (*Reader, *v1.ArtifactTree, error) {
	m, err := l.manifest(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	tree, err := readTree(m)
	if err != nil {
		return nil, nil, fmt.Errorf("artifact %s: %w", a.GetName(), err)
	}
	r := &Reader{ctx: ctx, library: l, m: m, headerOf: -1, chunk: -1}
	if content := m.GetContent(); len(content) > 0 {
		if r.content, err = chunkDecoder().DecodeAll(content, nil); err != nil {
			return nil, nil, fmt.Errorf("artifact %s: %w", a.GetName(), err)
		}
		r.ends, r.chunk = []int64{int64(len(r.content))}, 0
	}
	end := int64(0)
	for _, n := range m.GetChunkSizes() {
		end += int64(n)
		r.ends = append(r.ends, end)
	}
	return r, tree, nil
}

// manifest returns the manifest of an artifact.
func (l *Library) manifest(ctx context.Context, a *v1.Artifact) (*v1.ArtifactManifest, error) {
	m := &v1.ArtifactManifest{}
	err := l.retry(ctx, func() error { return l.Store.AwaitMessage(ctx, a.GetManifest(), m, store.Arrival) })
	if err == nil && m.GetArtifact().GetDigest() != a.GetDigest() {
		err = invalid("it has the digest %s, not %s", m.GetArtifact().GetDigest(), a.GetDigest())
	}
	if err != nil {
		return nil, fmt.Errorf("artifact %s: %w", a.GetName(), err)
	}
	return m, nil
}

// Size returns the number of bytes that can be read.
func (r *Reader) Size() int64 { return r.size }

// Tag returns a text that is equal only for artifacts that are read as the same bytes. Unlike the digest, it depends on times.
func (r *Reader) Tag() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %d\n", r.m.GetArtifact().GetName(), r.m.GetArtifact().GetDigest(), r.m.GetStoredAt().AsTime().UnixNano())
	h.Write(r.m.GetTree())
	return hex.EncodeToString(h.Sum(nil))
}

// Seek implements io.Seeker.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning")
	}
	r.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if r.at >= r.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.size-r.at)]
	i := sort.Search(len(r.parts), func(i int) bool { return r.parts[i].start > r.at }) - 1
	end := r.size
	if i+1 < len(r.parts) {
		end = r.parts[i+1].start
	}
	n, err := r.readPart(i, p[:min(int64(len(p)), end-r.at)])
	r.at += int64(n)
	return n, err
}

// readPart reads from a part, in which the position and all of p are.
func (r *Reader) readPart(i int, p []byte) (int, error) {
	one := r.parts[i]
	at := r.at - one.start
	if at < one.header {
		if r.headerOf != i {
			header, err := r.headerFor(one.entry)
			if err != nil {
				return 0, err
			}
			r.header, r.headerOf = header, i
		}
		return copy(p, r.header[at:]), nil
	}
	if at -= one.header; at < one.entry.GetSize() {
		return r.readContent(one.content+at, p[:min(int64(len(p)), one.entry.GetSize()-at)])
	}
	clear(p)
	return len(p), nil
}

// readContent reads from the joined contents.
func (r *Reader) readContent(at int64, p []byte) (int, error) {
	i := sort.Search(len(r.ends), func(i int) bool { return r.ends[i] > at })
	start := int64(0)
	if i > 0 {
		start = r.ends[i-1]
	}
	if r.chunk != i {
		r.content, r.chunk = nil, -1 // frees the memory before the next chunk is fetched
		content, err := r.library.chunk(r.ctx, r.m.GetChunks()[i])
		if err != nil {
			return 0, err
		}
		if int64(len(content)) != r.ends[i]-start {
			return 0, invalid("chunk %x has %d bytes instead of %d", r.m.GetChunks()[i], len(content), r.ends[i]-start)
		}
		r.content, r.chunk = content, i
	}
	return copy(p, r.content[at-start:]), nil
}

// headerFor returns the header of an entry in the archive.
func (r *Reader) headerFor(e *v1.ArtifactEntry) ([]byte, error) {
	top := r.m.GetArtifact().GetName()
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: path.Join(top, e.GetPath()), Linkname: e.GetTarget(), Mode: int64(e.GetMode()), Size: e.GetSize(),
		ModTime: time.Unix(0, e.GetModifiedNs()).UTC(), Format: tar.FormatPAX,
	}
	switch e.GetKind() {
	case v1.ArtifactEntry_KIND_FOLDER:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	case v1.ArtifactEntry_KIND_SYMLINK:
		h.Typeflag, h.Mode = tar.TypeSymlink, 0o777
	case v1.ArtifactEntry_KIND_HARD_LINK:
		h.Typeflag, h.Linkname = tar.TypeLink, path.Join(top, e.GetTarget())
	}
	var header bytes.Buffer
	err := tar.NewWriter(&header).WriteHeader(h)
	return header.Bytes(), err
}
