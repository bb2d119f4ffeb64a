package taskrunner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"switchyard/activities/artifacts"
	"switchyard/activities/gitclone"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// filesDir returns the directory of a task with artifacts, a source or a shared workspace, or "" for any other task.
func (w *work) filesDir() string {
	switch req := w.attempt.req; {
	case req.GetWorkspace() != nil:
		return w.node.sharedDir(req)
	case w.hasFiles():
		return w.ws.FilesDir()
	}
	return ""
}

// openFiles opens the directory of a task with artifacts. No task can put a link in the place of a shared workspace.
func (w *work) openFiles() (*os.Root, error) {
	if w.attempt.req.GetWorkspace() != nil {
		return os.OpenRoot(w.filesDir())
	}
	return w.ws.OpenFiles()
}

func (w *work) hasFiles() bool {
	req := w.attempt.req
	return req.GetArtifacts() != nil || req.GetSource() != nil || req.GetGitSource() != nil
}

// library returns the library of artifacts for this attempt. Each chunk that arrives shows that the attempt, which may not have
// started yet, is not stuck.
func (w *work) library() *artifacts.Library {
	l := *w.node.Artifacts
	l.Retry, l.Progress, l.Keep = w.node.records().insist, w.attempt.beats.extendStart, definition.ArtifactsKeep(w.attempt.req.GetArtifacts())
	return &l
}

// loadArtifacts creates the directory of a task with artifacts or a source, unless that is shared, and brings the files that it starts
// with. A shared directory has the source already if a task that shares it has completed. A response means that the member has
// already failed.
func (w *work) loadArtifacts(ctx context.Context) (*historyv1.ExecuteResponse, error) {
	req := w.attempt.req
	if !w.hasFiles() {
		return nil, nil
	}
	if req.GetWorkspace() == nil {
		if err := w.ws.MakeFiles(); err != nil {
			return nil, err
		}
	}
	root, err := w.openFiles()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	defer w.attempt.progress.announce(phrase.ArtifactsWait)()
	if !req.GetWorkspace().GetUsed() {
		if err := w.loadSource(ctx, root); err != nil {
			return w.notLoaded(ctx, "the source of the run", err)
		}
	}
	for _, in := range req.GetArtifacts().GetIn() {
		if err := w.loadArtifact(ctx, in, root); err != nil {
			return w.notLoaded(ctx, "artifact "+in.GetFrom(), err)
		}
	}
	return nil, nil
}

// errExpired means that the files of an artifact were removed after the time that its task asked to keep them.
var errExpired = errors.New("expired")

// load loads an artifact of a task upstream. The error is that of Library.Load, or errExpired.
func (w *work) load(ctx context.Context, task string, a *v1.Artifact, root *os.Root, folder string) error {
	err := w.library().Load(ctx, a, root, folder)
	if errors.Is(err, store.ErrNotFound) && artifacts.HasExpired(a, time.Now()) {
		return fmt.Errorf("its files %w at %s (artifacts.keep); `switchyard runs retry %s --from %s` runs that task again, too", errExpired, a.GetExpiresAt().AsTime().Format(time.RFC3339), w.attempt.req.GetRunId(), task)
	}
	return err
}

// notLoaded returns the failure of a member whose files cannot be loaded. The only error is that of ctx.
func (w *work) notLoaded(ctx context.Context, what string, err error) (*historyv1.ExecuteResponse, error) {
	if ctx.Err() != nil {
		return nil, err
	}
	reason := v1.ReasonArtifacts
	for _, hopeless := range []error{errNoArtifact, errExpired, errUnlisted, errSource, gitclone.ErrNoRef, gitclone.ErrNoRepository, gitclone.ErrDenied, artifacts.ErrInvalid, store.ErrNotFound} {
		if errors.Is(err, hopeless) {
			reason = v1.ReasonBadSpec
		}
	}
	text := fmt.Sprintf("%s: %v", what, err)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		text += fmt.Sprintf("; free space on node %s for %s, or start its worker with another --scratch-dir", w.node.Name, w.filesDir())
	}
	return &historyv1.ExecuteResponse{State: v1.TaskFailed, Reason: reason, Error: text, Result: &v1.TaskResult{ExitCode: -1}}, nil
}

// errNoArtifact means that a task upstream has left no artifact of a name, and errUnlisted that those of its instances are not known.
var (
	errNoArtifact = errors.New("there is no such artifact")
	errUnlisted   = errors.New("could not be listed")
)

// loadArtifact brings the files of an artifact, or those of the artifacts of all instances of a task that has fanned out: each in a
// folder named by the number of its instance.
func (w *work) loadArtifact(ctx context.Context, in *v1.ArtifactIn, root *os.Root) error {
	task, name := v1.SplitArtifact(in.GetFrom())
	view, folder := w.attempt.req.GetViews()[task], path.Clean(in.GetPath())
	if view.GetFanOut() == nil {
		found := v1.ArtifactNamed(view.GetResult().GetArtifacts(), name)
		if found == nil {
			return fmt.Errorf("task %s is %s: %w", task, view.GetState(), errNoArtifact)
		}
		return w.load(ctx, task, found, root, folder)
	}
	all, err := w.instanceArtifacts(ctx, task, name, view.GetFanOut())
	if err != nil {
		return err
	}
	if err := root.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(instancesAtOnce)
	for _, one := range all {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			number := strconv.Itoa(int(one.GetPosition()))
			if err := w.load(ctx, task, one.GetArtifact(), root, path.Join(folder, number)); err != nil {
				return fmt.Errorf("instance %s: %w", number, err)
			}
			w.library().Progress()
			return nil
		})
	}
	return group.Wait()
}

// instancesAtOnce is the number of artifacts of instances that are fetched concurrently. Each holds up to four chunks in memory.
const instancesAtOnce = 4

// instanceArtifacts returns the artifacts of a name that the instances of a task have left. Instances that did not complete have none.
func (w *work) instanceArtifacts(ctx context.Context, task, name string, view *historyv1.FanOutView) (all []*historyv1.InstanceArtifact, err error) {
	reader, list := w.node.inputReader(), &historyv1.ItemList{}
	if err := reader.records.insist(ctx, func() (err error) {
		list, err = reader.lists.All(ctx, reader.records.store, view.GetOutputs())
		return err
	}); err != nil {
		return nil, err
	}
	left, err := artifacts.UnpackInstances(list.GetArtifacts())
	if err != nil {
		return nil, err
	}
	for _, one := range left.GetList() {
		if one.GetArtifact().GetName() == name {
			all = append(all, one)
		}
	}
	if completed := int(view.GetCount()) - len(list.GetStates()); len(all) < completed {
		return nil, fmt.Errorf("the artifacts of the %d completed instances of %s %w: %s", completed, task, errUnlisted, cmp.Or(view.GetError(), "there are too many"))
	}
	return all, nil
}

// saveArtifacts stores what a completed member has left, and adds it to the answer. A member whose artifacts cannot be stored, or not
// before its time limit ends limited, has failed. The only error is that of ctx.
func (w *work) saveArtifacts(ctx, limited context.Context, m *member, res *historyv1.ExecuteResponse) error {
	if res.GetState() != v1.TaskCompleted || len(w.attempt.req.GetArtifacts().GetOut()) == 0 {
		return nil
	}
	defer w.attempt.progress.announce(phrase.ArtifactsWait)()
	saved, err := w.saveAll(limited, m)
	full, isFull := errors.AsType[*store.ArtifactQuotaError](err)
	switch {
	case err == nil:
		res.Result.Artifacts = saved
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		res.State, res.Reason, res.Error = v1.TaskFailed, v1.ReasonTimeout, "its time limit passed while its artifacts were being stored"
	case isFull:
		res.State, res.Reason, res.Error = v1.TaskFailed, v1.ReasonArtifactQuota, full.Text
	case errors.Is(err, artifacts.ErrInvalid), errors.Is(err, artifacts.ErrNone):
		res.State, res.Reason, res.Error = v1.TaskFailed, v1.ReasonBadSpec, err.Error()
	default:
		res.State, res.Reason, res.Error = v1.TaskFailed, v1.ReasonArtifacts, err.Error()
	}
	return nil
}

// saveAll stores the artifacts of a member.
func (w *work) saveAll(ctx context.Context, m *member) (all []*v1.Artifact, err error) {
	root, err := w.openFiles()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	req := w.attempt.req
	for _, out := range req.GetArtifacts().GetOut() {
		key := storekey.Artifact(names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration(), m.name, m.claim, out.GetName())
		saved, err := w.library().Save(ctx, key, out.GetName(), out.GetPath(), root)
		if errors.Is(err, artifacts.ErrNone) && out.GetIfNone() == v1.IfNoneIgnore {
			saved, err = w.library().SaveNone(ctx, key, out.GetName())
		}
		if err != nil {
			return nil, fmt.Errorf("artifact %s: %w", out.GetName(), err)
		}
		all = append(all, saved)
	}
	return all, nil
}
