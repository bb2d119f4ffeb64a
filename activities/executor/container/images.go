package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// imageTimeout bounds a question about an image that the engine has.
	imageTimeout = 30 * time.Second
	// silenceTimeout is how long the engine may say nothing of a pull or a load. It
	// is silent while it verifies a layer.
	silenceTimeout = 5 * time.Minute
)

// Pull policies of a spec; the empty one is pullIfAbsent.
const (
	pullIfAbsent = "ifNotPresent"
	pullAlways   = "always"
	pullNever    = "never"
)

// ensureImage sees to it that the engine has the image that a spec names, and returns
// its content address: the digest in its registry, such as "busybox@sha256:...", of one
// that was pulled, and the engine's id of another. notify is called with the progress, a
// line each, while ensureImage has not returned; nil: it is dropped. Attempts that want the
// same image at once get it by one pull. An image that cannot be had is a fault of the
// node.
func (e *Executor) ensureImage(ctx context.Context, spec *v1.ContainerSpec, notify func(string)) (address string, err error) {
	if notify == nil {
		notify = func(string) {}
	}
	if spec.GetImageTarball() != "" {
		return e.ensureLoaded(ctx, spec, notify)
	}
	if spec.GetPullPolicy() != pullAlways {
		found, err := e.inspectImage(ctx, spec.GetImage())
		switch {
		case err == nil:
			return contentAddress(spec.GetImage(), found), nil
		case !cerrdefs.IsNotFound(err):
			return "", fmt.Errorf("look for image %s: %w", spec.GetImage(), err)
		case spec.GetPullPolicy() == pullNever:
			return "", fmt.Errorf("image %s is not on %s, and spec.pullPolicy is %q: bring it there, or let it be pulled", spec.GetImage(), hostname(), pullNever)
		}
	}
	if err := e.pull(ctx, spec, notify); err != nil {
		return "", err
	}
	found, err := e.inspectImage(ctx, spec.GetImage())
	if err != nil {
		return "", fmt.Errorf("look at the pulled image %s: %w", spec.GetImage(), err)
	}
	return contentAddress(spec.GetImage(), found), nil
}

// inspectImage asks the engine for an image.
func (e *Executor) inspectImage(ctx context.Context, name string) (image.InspectResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, imageTimeout)
	defer cancel()
	found, err := e.docker.ImageInspect(ctx, name)
	return found, toldWhy(ctx, err)
}

// toldWhy is an error of the engine's client, or the reason that ctx has ended for.
func toldWhy(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return fmt.Errorf("the container engine does not answer: %w", context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// contentAddress is the digest under which the registry of a name has an image, or the
// image's id where none has it.
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

// isID says that a name is the id of an image, which no registry knows.
func isID(name string) bool { return strings.HasPrefix(name, "sha256:") }

// hostname names this machine to people.
func hostname() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "this node"
}
