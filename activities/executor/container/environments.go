package container

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// environmentRepository is the prefix of the names of environment images in an engine:
// switchyard-environment/<name>:<version>-<digest prefix of the archive>. The digest distinguishes environments with the same
// name and version, if one was deleted before the other was created.
const environmentRepository = "switchyard-environment/"

// environmentRepositoryOf returns the repository of the images of an environment.
func environmentRepositoryOf(name string) string {
	if _, err := reference.ParseNormalizedNamed(environmentRepository + name); err != nil {
		// A repository name must not contain two adjacent separators. No environment name has a slash.
		return environmentRepository + "hex/" + hex.EncodeToString([]byte(name))
	}
	return environmentRepository + name
}

// environmentTag returns the tag of the image of an environment version.
func environmentTag(e *v1.Environment) string {
	const start = 12
	return fmt.Sprintf("%s:%d-%s", environmentRepositoryOf(e.GetName()), e.GetVersion(), e.GetDigest()[:min(start, len(e.GetDigest()))])
}

// environmentTries is how often ensureEnvironment looks up an environment whose newest version is replaced while it loads.
const environmentTries = 5

// ensureEnvironment ensures that the engine has the newest version of the spec's environment. It sets the spec's image to the
// image's id and returns the id. The image remains at least until release is called. Concurrent attempts that need the same
// version share one load. ensureEnvironment passes progress to notify, one line a call, until it returns.
func (st *imageStore) ensureEnvironment(ctx context.Context, spec *v1.ContainerSpec, notify func(string)) (id string, release func(), err error) {
	name := spec.GetEnvironment()
	if st.sources.environments == nil {
		return "", nil, refusal(fmt.Sprintf("environment %s: this node does not support environments; set an image instead", name))
	}
	if notify == nil {
		notify = func(string) {}
	}
	for range environmentTries {
		found, err := st.sources.environments.Find(ctx, name)
		switch {
		case errors.Is(err, executor.ErrNoEnvironment):
			st.dropImages(ctx, name, "")
			return "", nil, errCannotRun(fmt.Errorf("no environment named %s is ready; list environments with `switchyard env list`, or create it with `switchyard env create %s`", name, name))
		case err != nil:
			return "", nil, fmt.Errorf("find environment %s: %w", name, err)
		case found.GetKind() != v1.EnvironmentImage:
			return "", nil, errCannotRun(fmt.Errorf("environment %s is a virtual machine's %s, not a container image; use it in a vps with `backend: qemu`, or pick another from `switchyard env list`", name, found.GetKind()))
		}
		id, release, err = st.ensureVersion(ctx, found, notify)
		if err == nil {
			spec.Image = id
			return id, release, nil
		}
		if ctx.Err() != nil {
			return "", nil, context.Cause(ctx)
		}
		if !errors.Is(err, executor.ErrNoEnvironment) {
			return "", nil, fmt.Errorf("load environment %s, version %d: %w", name, found.GetVersion(), err)
		}
		notify(fmt.Sprintf("environment %s, version %d, was replaced by a newer version", name, found.GetVersion()))
	}
	return "", nil, fmt.Errorf("environment %s was replaced repeatedly while it was loaded; try again", name)
}

// ensureVersion ensures that the engine has the image of a version, and removes unused images of other versions.
func (st *imageStore) ensureVersion(ctx context.Context, env *v1.Environment, notify func(string)) (id string, release func(), err error) {
	tag := environmentTag(env)
	unhold := st.inUse.keepImage(tag)
	defer func() {
		if err != nil {
			unhold()
		}
	}()
	for _, name := range []string{tag, env.GetImageId()} {
		if name == "" {
			continue
		}
		found, err := st.inspectImage(ctx, name)
		if cerrdefs.IsNotFound(err) {
			continue
		}
		if err == nil && name != tag {
			err = st.docker.ImageTag(ctx, found.ID, tag)
		}
		if err != nil {
			return "", nil, fmt.Errorf("find its image: %w", causeOfTimeout(ctx, err))
		}
		st.dropImages(ctx, env.GetName(), tag)
		return found.ID, unhold, nil
	}
	id, err = st.versions.Do(ctx, tag, notify, func(ctx context.Context, say func(string)) (string, error) {
		return st.loadEnvironment(ctx, env, say)
	})
	if err != nil {
		return "", nil, err
	}
	st.dropImages(ctx, env.GetName(), tag)
	return id, unhold, nil
}

// environmentsInUse counts the attempts that are about to create a container from an environment, by image tag. The zero value is
// ready.
type environmentsInUse struct {
	// mu is held while images are removed.
	mu    sync.Mutex
	holds map[string]int
}

// keepImage prevents the removal of an image until release is called. Calling release twice is a no-op.
func (u *environmentsInUse) keepImage(tag string) (release func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.holds == nil {
		u.holds = map[string]int{}
	}
	u.holds[tag]++
	return sync.OnceFunc(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.holds[tag]--; u.holds[tag] == 0 {
			delete(u.holds, tag)
		}
	})
}

// dropImages removes the images of an environment except the tag but. It keeps images that a container uses or an attempt is
// about to use. Removal is tried again when the next attempt needs the environment. A cancelled ctx does not end a removal that has
// begun: the engine would carry it out regardless, perhaps when another attempt is already about to use the image.
func (st *imageStore) dropImages(ctx context.Context, name, but string) {
	st.inUse.mu.Lock()
	defer st.inUse.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, imageTimeout)
	defer cancel()
	repository := environmentRepositoryOf(name)
	found, err := st.docker.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", repository))})
	if err != nil {
		st.logger.Warn("cannot list the images of older environment versions", "environment", name, "error", causeOfTimeout(ctx, err))
		return
	}
	for _, one := range found {
		for _, tag := range one.RepoTags {
			if !strings.HasPrefix(tag, repository+":") || tag == but || st.inUse.holds[tag] > 0 {
				continue
			}
			if err := st.dropImage(ctx, tag); err != nil && !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err) {
				st.logger.Warn("cannot remove the image of an older environment version", "image", tag, "error", err)
			}
		}
	}
}

// dropImage removes a tag, and its image if that has no other tag, even if ctx ends meanwhile.
func (st *imageStore) dropImage(ctx context.Context, tag string) error {
	if ctx.Err() != nil {
		return causeOfTimeout(ctx, ctx.Err())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), imageTimeout)
	defer cancel()
	_, err := st.docker.ImageRemove(ctx, tag, image.RemoveOptions{PruneChildren: true})
	return causeOfTimeout(ctx, err)
}
