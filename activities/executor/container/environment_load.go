package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/docker/docker/api/types/image"

	v1 "switchyard/proto/switchyard/v1"
)

// loadEnvironment loads the archive of an environment version into the engine, tags the image and returns its id. After an error
// the image has no tag.
func (st *imageStore) loadEnvironment(ctx context.Context, env *v1.Environment, say func(string)) (id string, err error) {
	say(fmt.Sprintf("loading environment %s, version %d (%s)", env.GetName(), env.GetVersion(), megabytes(env.GetSize())))
	began := time.Now()
	opened, err := st.sources.environments.Open(ctx, env)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	archive := &source{Reader: opened}
	ctx, watch := st.watchSilence(ctx)
	defer watch.stop()
	id, err = st.loadArchive(ctx, watch.reader(archive), watch, say)
	if err == nil {
		// The engine may stop reading before the end of the archive. The last Read checks the digest.
		_, err = io.Copy(io.Discard, archive)
	}
	if failed := archive.failure(); failed != nil {
		err = failed // the engine's error is less specific
	}
	if err != nil {
		st.removeUnnamed(ctx, id)
		return "", err
	}
	if err := st.docker.ImageTag(ctx, id, environmentTag(env)); err != nil {
		st.removeUnnamed(ctx, id)
		return "", causeOfTimeout(ctx, err)
	}
	say(fmt.Sprintf("environment %s, version %d, is loaded after %s", env.GetName(), env.GetVersion(), time.Since(began).Round(100*time.Millisecond)))
	return id, nil
}

// removeUnnamed removes an image after a failed load, even if ctx has ended. It keeps an image that has a tag.
func (st *imageStore) removeUnnamed(ctx context.Context, id string) {
	if id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), imageTimeout)
	defer cancel()
	if found, err := st.inspectImage(ctx, id); err == nil && len(found.RepoTags) == 0 {
		_, _ = st.docker.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true}) // fails if a container uses the image
	}
}

// loadArchive loads an archive of one image into the engine and returns the image's id.
func (st *imageStore) loadArchive(ctx context.Context, archive io.Reader, watch *silence, say func(string)) (id string, err error) {
	response, err := st.docker.ImageLoad(ctx, archive)
	if err != nil {
		return "", causeOfTimeout(ctx, err)
	}
	defer response.Body.Close()
	var names []string
	listen := func(line string) {
		for _, start := range []string{"Loaded image: ", "Loaded image ID: "} {
			if name, ok := strings.CutPrefix(line, start); ok {
				names = append(names, name)
				return
			}
		}
		say(line)
	}
	if err := follow(watch.reader(response.Body), newProgress(listen, time.Now)); err != nil {
		return "", causeOfTimeout(ctx, err)
	}
	if len(names) == 0 {
		return "", errors.New("the container engine found no image in the archive")
	}
	if isID(names[0]) {
		return names[0], nil
	}
	found, err := st.inspectImage(ctx, names[0])
	return found.ID, err
}

// source is a reader of an archive that records its error. The engine's client reads it in a goroutine of its own.
type source struct {
	io.Reader
	failed atomic.Pointer[error]
}

// Read records an error other than the end of the archive.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed.Store(&err)
	}
	return n, err
}

// failure returns the error with which reading the source failed, or nil.
func (s *source) failure() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// megabytes returns a size in bytes as text in MB.
func megabytes(bytes int64) string {
	switch size := float64(bytes) / 1e6; {
	case size >= 9.5:
		return fmt.Sprintf("%.0f MB", size)
	default:
		return fmt.Sprintf("%.1f MB", size)
	}
}
