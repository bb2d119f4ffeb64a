package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"switchyard/activities/executor"
	"switchyard/activities/executor/singleflight"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// imageTimeout bounds a call that inspects or lists images of the engine.
	imageTimeout = 30 * time.Second
	// silenceTimeout is how long the engine may report no progress of a pull or a load. It
	// is silent while it verifies a layer.
	silenceTimeout = 5 * time.Minute
)

// Pull policies of a spec; the empty one is pullIfAbsent.
const (
	pullIfAbsent = "ifNotPresent"
	pullAlways   = "always"
	pullNever    = "never"
)

// imageSources is where images come from, apart from registries. The fields are those of Options.
type imageSources struct {
	registryAuth map[string]string
	openTarball  func(ctx context.Context, url string) (io.ReadCloser, time.Time, error)
	environments executor.Environments
}

// imageStore brings images into the engine: from registries, from archives, and from environments. It is safe for concurrent
// use; each of its parts has its own lock.
type imageStore struct {
	docker  *client.Client
	sources imageSources
	logger  *slog.Logger

	pulls, loads singleflight.Group[[]string]
	versions     singleflight.Group[string] // loads environments and returns the ids of their images
	inUse        environmentsInUse
	silence      time.Duration // overrides silenceTimeout if it is not 0
}

// ensureImage ensures that the engine has the spec's image, and returns its content
// address. For a pulled image that is the digest in its registry, such as
// "busybox@sha256:...", otherwise the engine's id of the image. ensureImage passes progress
// to notify, one line a call, until it returns; notify may be nil. Concurrent attempts that
// need the same image share one pull. A missing image is a fault of the node.
func (st *imageStore) ensureImage(ctx context.Context, spec *v1.ContainerSpec, notify func(string)) (address string, err error) {
	if notify == nil {
		notify = func(string) {}
	}
	if spec.GetImageTarball() != "" {
		return st.ensureLoaded(ctx, spec, notify)
	}
	if spec.GetPullPolicy() != pullAlways {
		found, err := st.inspectImage(ctx, spec.GetImage())
		switch {
		case err == nil:
			return contentAddress(spec.GetImage(), found), nil
		case !cerrdefs.IsNotFound(err):
			return "", fmt.Errorf("inspect image %s: %w", spec.GetImage(), err)
		case spec.GetPullPolicy() == pullNever:
			return "", fmt.Errorf("image %s is not on %s, and spec.pullPolicy is %q; load the image on the node, or change spec.pullPolicy", spec.GetImage(), hostname(), pullNever)
		}
	}
	if err := st.pull(ctx, spec, notify); err != nil {
		return "", err
	}
	found, err := st.inspectImage(ctx, spec.GetImage())
	if err != nil {
		return "", fmt.Errorf("inspect the pulled image %s: %w", spec.GetImage(), err)
	}
	return contentAddress(spec.GetImage(), found), nil
}

// inspectImage looks up an image in the engine.
func (st *imageStore) inspectImage(ctx context.Context, name string) (image.InspectResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, imageTimeout)
	defer cancel()
	found, err := st.docker.ImageInspect(ctx, name)
	return found, causeOfTimeout(ctx, err)
}

// causeOfTimeout returns an error of the engine's client, or the reason for which ctx ended.
func causeOfTimeout(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return fmt.Errorf("the container engine does not answer: %w", context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// contentAddress returns the image's digest in the registry of its name, or the image's id
// if the registry does not have it.
func contentAddress(name string, found image.InspectResponse) string {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return found.ID
	}
	digests := slices.Sorted(slices.Values(found.RepoDigests))
	for _, digest := range digests {
		if of, err := reference.ParseNormalizedNamed(digest); err == nil && of.Name() == named.Name() && (!hasDigest(named) || sameDigest(of, named)) {
			return digest
		}
	}
	return found.ID
}

func hasDigest(n reference.Named) bool {
	_, ok := n.(reference.Digested)
	return ok
}

func sameDigest(a, b reference.Named) bool {
	of, is := a.(reference.Digested)
	with, too := b.(reference.Digested)
	return is && too && of.Digest() == with.Digest()
}

// isID reports whether a name is an image id, which no registry can resolve.
func isID(name string) bool { return strings.HasPrefix(name, "sha256:") }

// hostname returns the name of this machine for messages.
func hostname() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "this node"
}
