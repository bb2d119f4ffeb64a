package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor/singleflight"
	"switchyard/activities/gitclone"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// errSource means that the source of a run is described wrongly.
var errSource = errors.New("the source cannot be fetched")

// clones are the sources that a node is fetching, by run.
type clones = singleflight.Group[*v1.Artifact]

// loadSource brings the source of the run, if it has one.
func (w *work) loadSource(ctx context.Context, root *os.Root) (err error) {
	req := w.attempt.req
	found := proto.CloneOf(req.GetSource())
	switch {
	case found != nil:
		found.Manifest = storekey.Source(req.GetRunId())
	case req.GetGitSource() != nil:
		found, err = w.findCommit(ctx)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	return w.library().Load(ctx, found, root, ".")
}

// findCommit returns the source of a run that comes from git. The first node that stores it decides for the run which commit it is.
func (w *work) findCommit(ctx context.Context) (*v1.Artifact, error) {
	library, run := w.library(), w.attempt.req.GetRunId()
	found, err := library.Find(ctx, storekey.Source(run))
	if !errors.Is(err, store.ErrNotFound) {
		return found, err
	}
	m, source := &w.attempt.members[0], w.attempt.req.GetGitSource()
	var secret string
	if ref := source.GetSecret(); ref != "" {
		reader := w.node.secretReader()
		if secret, err = reader.awaitSecret(ctx, ref, reader.requester(w.attempt.req, m)); err != nil {
			return nil, fmt.Errorf("%w: source.secret: %w", errSource, err)
		}
	}
	return w.node.clones.Do(ctx, run, func(string) { library.Progress() }, func(ctx context.Context, say func(string)) (*v1.Artifact, error) {
		found, err := library.Find(ctx, storekey.Source(run))
		if !errors.Is(err, store.ErrNotFound) {
			return found, err
		}
		return w.clone(ctx, m, secret, func() { say("") })
	})
}

// clone fetches the source of a run from git and stores it.
func (w *work) clone(ctx context.Context, m *member, secret string, progress func()) (_ *v1.Artifact, err error) {
	req, n := w.attempt.req, w.node
	scratch, remove, err := n.Folders.Workspaces.Scratch()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	dir, source := filepath.Join(scratch, "files"), req.GetGitSource()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	_, hasShell := n.Executors[v1.TypeShell]
	from := gitclone.Clone{URL: source.GetGit(), Ref: source.GetRef(), Secret: secret, AllowsFile: hasShell, Progress: progress}
	commit, err := from.Into(ctx, dir, scratch)
	if errors.Is(err, gitclone.ErrDenied) {
		err = fmt.Errorf("source.secret: %w", err)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if source.GetPath() != "" {
		sub, err := root.OpenRoot(source.GetPath())
		if err != nil {
			return nil, fmt.Errorf("%w: commit %s of %s has no folder %s", errSource, commit, source.GetGit(), source.GetPath())
		}
		defer sub.Close()
		root = sub
	}
	library := *n.Artifacts
	library.Retry, library.Progress = n.records().insist, progress
	draft := storekey.Artifact(names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration(), m.name, m.claim, "source")
	return library.SaveCommit(ctx, draft, storekey.Source(req.GetRunId()), commit, root)
}
