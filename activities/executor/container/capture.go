package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// Capture writes an archive with an image of the container's files. The image has the configuration of the container's own image.
// It includes neither mounts nor the container's environment variables, which may be secret. The container is paused only while
// its files are copied to the node's disk, and not while the archive is written from there. Capture leaves nothing in the engine.
func (e *Executor) Capture(ctx context.Context, id string, to io.Writer) (executor.Captured, error) {
	r := e.find(id)
	if r == nil {
		return executor.Captured{}, executor.ErrNotRunning
	}
	ctx, done := e.engine.guard(ctx)
	defer done()
	config, err := r.imageConfig(ctx)
	if err != nil {
		return executor.Captured{}, err
	}
	layer, err := r.copyFiles(ctx)
	if err != nil {
		return executor.Captured{}, err
	}
	defer layer.close()
	imageID, err := writeImage(ctx, to, config, layer)
	if err != nil {
		return executor.Captured{}, fmt.Errorf("write the image of container %s: %w", r.name, causeOf(ctx, err))
	}
	return executor.Captured{Kind: v1.EnvironmentImage, ImageID: imageID}, nil
}

// imageConfig returns the configuration of the container's image.
func (r *running) imageConfig(ctx context.Context) (imageConfig, error) {
	ctx, cancel := context.WithTimeout(ctx, imageTimeout)
	defer cancel()
	c, err := r.e.docker.ContainerInspect(ctx, r.id)
	if cerrdefs.IsNotFound(err) {
		return imageConfig{}, executor.ErrNotRunning
	}
	if err != nil {
		return imageConfig{}, fmt.Errorf("inspect container %s: %w", r.name, causeOfTimeout(ctx, err))
	}
	found, err := r.e.docker.ImageInspect(ctx, c.Image)
	if cerrdefs.IsNotFound(err) {
		return imageConfig{}, &executor.Refusal{Text: "the image of its container was removed from the node, so the environment cannot have the image's configuration"}
	}
	if err != nil {
		return imageConfig{}, fmt.Errorf("inspect the image of container %s: %w", r.name, causeOfTimeout(ctx, err))
	}
	return configOf(found), nil
}

// copyFiles copies the files of the container, which is paused meanwhile.
func (r *running) copyFiles(ctx context.Context) (_ *layerFile, err error) {
	ctx, cancel := r.withAttempt(ctx)
	defer cancel()
	release, err := r.pauseForCapture(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	layer, err := newLayerFile(r.e.opts.ScratchDir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			layer.close()
		}
	}()
	files, err := r.e.docker.ContainerExport(ctx, r.id)
	if err != nil {
		return nil, r.failedToCopy(ctx, err)
	}
	defer files.Close()
	if err := layer.fill(files); err != nil {
		return nil, r.failedToCopy(ctx, err)
	}
	if r.lifecycle.State().IsEnding() { // the copy may be truncated
		return nil, executor.ErrNotRunning
	}
	return layer, nil
}

// failedToCopy returns the error of a failed copy, or ErrNotRunning if the container has ended.
func (r *running) failedToCopy(ctx context.Context, err error) error {
	if r.lifecycle.State().IsEnding() || cerrdefs.IsNotFound(err) {
		return executor.ErrNotRunning
	}
	return fmt.Errorf("copy the files of container %s: %w", r.name, causeOf(ctx, err))
}

// resumePatience bounds the calls that resume a container after a capture.
const resumePatience = time.Minute

// pauseForCapture pauses the container until release is called, unless it is paused already. Meanwhile the container cannot be resumed or
// restarted. It can be stopped, which also resumes it. A cancelled ctx does not end the call to the engine: the engine would still
// pause the container, perhaps after the capture has resumed it.
func (r *running) pauseForCapture(ctx context.Context) (release func(), err error) {
	r.steering.Lock()
	defer r.steering.Unlock()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	paused, err := r.lifecycle.BeginCapture()
	switch {
	case err != nil:
		return nil, err
	case paused:
		return func() { r.lifecycle.EndCapture(true) }, nil
	}
	pausing, done := r.e.engine.guard(context.WithoutCancel(ctx))
	defer done()
	err = r.e.docker.ContainerPause(pausing, r.id)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		// The engine may have paused the container despite the error.
		r.resumeAfterCapture()
		text := strings.ToLower(err.Error())
		if cerrdefs.IsNotFound(err) || strings.Contains(text, "is not running") {
			return nil, executor.ErrNotRunning
		}
		return nil, fmt.Errorf("pause container %s: %w", r.name, causeOf(ctx, err))
	}
	return r.resumeAfterCapture, nil
}

// resumeAfterCapture continues a container that pauseForCapture paused, and ends the hold.
func (r *running) resumeAfterCapture() {
	ctx, cancel := context.WithTimeout(context.Background(), resumePatience)
	defer cancel()
	err := r.e.docker.ContainerUnpause(ctx, r.id)
	for err != nil && ctx.Err() == nil && !r.lifecycle.State().IsEnding() && !isNotPaused(err) {
		select {
		case <-ctx.Done():
		case <-time.After(removePoll):
		}
		err = r.e.docker.ContainerUnpause(ctx, r.id)
	}
	isPaused := err != nil && !r.lifecycle.State().IsEnding() && !isNotPaused(err)
	if isPaused {
		r.e.logger.Warn("a container is still paused after an environment was captured from it; resume its task", "container", r.name, "error", err)
		r.attempt.Notify(fmt.Sprintf("the container is still paused after an environment was captured from it; resume the task (%v)", err))
	}
	r.lifecycle.EndCapture(isPaused)
}

// isNotPaused reports whether an unpause failed because the container is not paused, not running or gone.
func isNotPaused(err error) bool {
	text := strings.ToLower(err.Error())
	return cerrdefs.IsNotFound(err) || strings.Contains(text, "is not paused") || strings.Contains(text, "is not running")
}

// CaptureImage writes an archive with an image, which it pulls if the engine lacks it.
func (e *Executor) CaptureImage(ctx context.Context, image, registryAuth string, to io.Writer, say func(string)) (executor.Captured, error) {
	if err := e.engine.awaitFirstPing(ctx); err != nil {
		return executor.Captured{}, err
	}
	ctx, done := e.engine.guard(ctx)
	defer done()
	if _, err := e.images.ensureImage(ctx, &v1.ContainerSpec{Image: image, RegistryAuth: registryAuth}, say); err != nil {
		return executor.Captured{}, causeOf(ctx, err)
	}
	found, err := e.images.inspectImage(ctx, image)
	if err != nil {
		return executor.Captured{}, fmt.Errorf("inspect image %s: %w", image, err)
	}
	// Saved by its id, so that the archive does not name the image in other engines.
	saved, err := e.docker.ImageSave(ctx, []string{found.ID})
	if err != nil {
		return executor.Captured{}, fmt.Errorf("save image %s: %w", image, causeOf(ctx, err))
	}
	_, err = io.Copy(to, saved)
	if err = errors.Join(err, saved.Close()); err != nil {
		return executor.Captured{}, fmt.Errorf("save image %s: %w", image, causeOf(ctx, err))
	}
	return executor.Captured{Kind: v1.EnvironmentImage, ImageID: found.ID}, nil
}
