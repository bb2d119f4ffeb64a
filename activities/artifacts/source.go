package artifacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// SourceLimits bounds the files of a source. It keeps a person from sending a home directory.
type SourceLimits struct {
	Bytes int64
	Files int
}

// DefaultSourceLimits are the limits of a source that sets none: 1 GiB and 100,000 files, folders and links.
var DefaultSourceLimits = SourceLimits{Bytes: 1 << 30, Files: 100_000}

// ErrTooLarge is in the chain of the error of a source that exceeds its limits.
var ErrTooLarge = errors.New("too large")

// SaveSource stores the files of a folder for a run that is to be submitted, except those that .gitignore and .switchyardignore
// exclude, and .git itself. It returns the id of the upload. The errors are those of Save, and ErrTooLarge, which is returned
// before anything is stored.
func (l *Library) SaveSource(ctx context.Context, dir string, limits SourceLimits) (id string, saved *v1.Artifact, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", nil, err
	}
	defer root.Close()
	excluded, err := newIgnored(dir)
	if err != nil {
		return "", nil, err
	}
	m := &measure{root: root, ignored: excluded, limits: limits}
	if err := m.folder("."); err != nil {
		return "", nil, err
	}
	id = uuid.NewString()
	key := storekey.SourceUpload(id)
	p := &packer{upload: l.newUpload(ctx, key), links: map[[2]uint64]string{}, root: root, pattern: everything, ignored: excluded}
	p.upload.proves = true
	defer p.upload.abort()
	if _, err := p.addFolder(".", true); err != nil {
		p.upload.forget(context.WithoutCancel(ctx))
		return "", nil, err
	}
	saved, err = p.finish(ctx, key, "source")
	return id, saved, err
}

// SaveCommit stores the files of a folder, which are those of a commit, as the source of a run with a key of storekey.Source, unless
// the run has one, and returns the one that it has. draft is a key of storekey.Artifact, under which drafts are stored. The errors
// are those of Save.
func (l *Library) SaveCommit(ctx context.Context, draft, key, commit string, root *os.Root) (*v1.Artifact, error) {
	p := &packer{upload: l.newUpload(ctx, draft), links: map[[2]uint64]string{}, root: root, pattern: everything, commit: commit}
	defer p.upload.abort()
	if _, err := p.addFolder(".", true); err != nil {
		p.upload.forget(context.WithoutCancel(ctx))
		return nil, err
	}
	if _, err := p.finish(ctx, key, "source"); err != nil {
		return nil, err
	}
	return l.Find(ctx, key)
}

// Find returns the artifact with a manifest under a key. The error is store.ErrNotFound if there is none.
func (l *Library) Find(ctx context.Context, key string) (*v1.Artifact, error) {
	m := &v1.ArtifactManifest{}
	if err := l.retry(ctx, func() error { return l.Store.GetMessage(ctx, key, m) }); err != nil {
		return nil, err
	}
	a := m.GetArtifact()
	a.Manifest = key
	return a, nil
}

// measure sums up what a source has.
type measure struct {
	root    *os.Root
	ignored *ignored
	limits  SourceLimits
	bytes   int64
	files   int
}

// folder adds a folder. It returns ErrTooLarge as soon as a limit is exceeded.
func (m *measure) folder(name string) error {
	leave, err := m.ignored.enter(m.root, name)
	if err != nil {
		return err
	}
	defer leave()
	entries, err := fs.ReadDir(m.root.FS(), name)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		child := path.Join(name, entry.Name())
		if m.ignored.leavesOut(child, entry.IsDir()) {
			continue
		}
		m.files++
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			m.bytes += info.Size()
		}
		if m.files > m.limits.Files {
			return fmt.Errorf("%w: with %s it has more than %d files, folders and links", ErrTooLarge, shown(child), m.limits.Files)
		}
		if m.bytes > m.limits.Bytes {
			return fmt.Errorf("%w: with %s it has more than %.3g GiB", ErrTooLarge, shown(child), float64(m.limits.Bytes)/(1<<30))
		}
		if entry.IsDir() {
			if err := m.folder(child); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckUpload returns an error unless a value is a SourceUpload whose sender has the contents of all its chunks, which are stored.
// The error is ErrInvalid, or one of the store.
func (l *Library) CheckUpload(ctx context.Context, value []byte) (*v1.ArtifactManifest, error) {
	up := &v1.SourceUpload{}
	if err := proto.Unmarshal(value, up); err != nil {
		return nil, invalid("it cannot be decoded: %v", err)
	}
	m := up.GetManifest()
	if _, err := readTree(m); err != nil {
		return nil, err
	}
	if len(up.GetProofs()) != len(m.GetChunks()) {
		return nil, invalid("it has %d chunks and proofs for %d", len(m.GetChunks()), len(up.GetProofs()))
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(loadsAtOnce)
	for i, digest := range m.GetChunks() {
		group.Go(func() error {
			content, err := l.chunk(ctx, digest)
			if err == nil && !bytes.Equal(proofOf(content), up.GetProofs()[i]) || errors.Is(err, store.ErrNotFound) {
				err = invalid("the contents of chunk %d are not the sender's", i)
			}
			return err
		})
	}
	return m, group.Wait()
}
