package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"

	v1 "switchyard/proto/switchyard/v1"
)

// ensureLoaded acts like ensureImage for an image from an archive. It loads the
// archive if the engine lacks the image, or was given the image before the archive
// last changed. At most one load of an archive is in progress at a time.
func (st *imageStore) ensureLoaded(ctx context.Context, spec *v1.ContainerSpec, notify func(string)) (string, error) {
	name, location := spec.GetImage(), spec.GetImageTarball()
	archive, changed, err := st.openTarball(ctx, location)
	if err != nil {
		return "", fmt.Errorf("image archive %s: %w", location, err)
	}
	archive.Close() // the load opens the archive again if it is needed
	found, err := st.inspectImage(ctx, name)
	switch {
	case err != nil && !cerrdefs.IsNotFound(err):
		return "", fmt.Errorf("inspect image %s: %w", name, err)
	case err == nil && !found.Metadata.LastTagTime.Before(changed):
		return contentAddress(name, found), nil
	}
	images, err := st.loads.Do(ctx, location, notify, func(ctx context.Context, say func(string)) ([]string, error) {
		return st.load(ctx, location, say)
	})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("load image archive %s: %w", location, err)
	case !slices.ContainsFunc(images, func(i string) bool { return sameImage(i, name) }):
		return "", fmt.Errorf("image archive %s has no image %s: it has %s", location, name, strings.Join(images, ", "))
	}
	if found, err = st.inspectImage(ctx, name); err != nil {
		return "", fmt.Errorf("inspect the loaded image %s: %w", name, err)
	}
	return contentAddress(name, found), nil
}

// openTarball opens an archive and returns its modification time.
func (st *imageStore) openTarball(ctx context.Context, location string) (io.ReadCloser, time.Time, error) {
	if !filepath.IsAbs(location) {
		if st.sources.openTarball == nil {
			return nil, time.Time{}, errors.New("this node loads archives only from files; set an absolute path")
		}
		return st.sources.openTarball(ctx, location)
	}
	// Opening anything other than a regular file, such as a pipe, may block forever.
	info, err := os.Stat(location)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("on %s: %w", hostname(), err)
	}
	file, err := os.Open(location)
	return file, info.ModTime(), err
}

// load loads an archive into the engine, and returns the names of its images, or the
// ids of images without a name.
func (st *imageStore) load(ctx context.Context, location string, say func(string)) ([]string, error) {
	say("loading image archive " + location)
	archive, _, err := st.openTarball(ctx, location)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	ctx, watch := st.watchSilence(ctx)
	defer watch.stop()
	response, err := st.docker.ImageLoad(ctx, watch.reader(archive))
	if err != nil {
		return nil, causeOfTimeout(ctx, err)
	}
	defer response.Body.Close()
	var images []string
	listen := func(line string) {
		say(line)
		for _, start := range []string{"Loaded image: ", "Loaded image ID: "} {
			if name, ok := strings.CutPrefix(line, start); ok {
				images = append(images, name)
			}
		}
	}
	if err := follow(watch.reader(response.Body), newProgress(listen, time.Now)); err != nil {
		return nil, causeOfTimeout(ctx, err)
	}
	for _, name := range images {
		if isID(name) {
			continue
		}
		// Loading an image does not update its tag time, which shows since when the
		// engine has it.
		if err := st.docker.ImageTag(ctx, name, name); err != nil {
			return nil, causeOfTimeout(ctx, err)
		}
	}
	return images, nil
}

// sameImage reports whether two names denote the same image.
func sameImage(a, b string) bool {
	if isID(a) || isID(b) {
		return a == b
	}
	named, err := reference.ParseNormalizedNamed(a)
	other, err2 := reference.ParseNormalizedNamed(b)
	return err == nil && err2 == nil && reference.TagNameOnly(named).String() == reference.TagNameOnly(other).String()
}
