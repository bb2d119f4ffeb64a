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

// loadEnvironment has the engine load the archive of a version of an environment and names the image. It returns the id of the image.
// After an error the image has no name.
func (e *Executor) loadEnvironment(ctx context.Context, env *v1.Environment, say func(string)) (id string, err error) {
	say(fmt.Sprintf("loading environment %s, version %d (%s)", env.GetName(), env.GetVersion(), megabytes(env.GetSize())))
	began := time.Now()
	opened, err := e.opts.Environments.Open(ctx, env)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	archive := &source{Reader: opened}
	ctx, watch := e.watchSilence(ctx)
	defer watch.stop()
	id, err = e.loadArchive(ctx, watch.reader(archive), watch, say)
	if err == nil {
		// The engine may stop reading before the end of the archive. The last Read checks the digest.
		_, err = io.Copy(io.Discard, archive)
	}
	if failed := archive.failure(); failed != nil {
		err = failed // what the engine says of it says less
	}
	if err != nil {
		e.removeUnnamed(ctx, id)
		return "", err
	}
	if err := e.docker.ImageTag(ctx, id, environmentTag(env)); err != nil {
		e.removeUnnamed(ctx, id)
		return "", toldWhy(ctx, err)
	}
	say(fmt.Sprintf("environment %s, version %d, is loaded after %s", env.GetName(), env.GetVersion(), time.Since(began).Round(100*time.Millisecond)))
	return id, nil
}

// removeUnnamed removes an image that was loaded in vain, also when ctx has ended. One that has a name stays.
func (e *Executor) removeUnnamed(ctx context.Context, id string) {
	if id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), imageTimeout)
	defer cancel()
	if found, err := e.inspectImage(ctx, id); err == nil && len(found.RepoTags) == 0 {
		_, _ = e.docker.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true}) // what uses it keeps it
	}
}

// loadArchive has the engine load an archive of one image, and returns the id of it.
func (e *Executor) loadArchive(ctx context.Context, archive io.Reader, watch *silence, say func(string)) (id string, err error) {
	response, err := e.docker.ImageLoad(ctx, archive)
	if err != nil {
		return "", toldWhy(ctx, err)
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
		return "", toldWhy(ctx, err)
	}
	if len(names) == 0 {
		return "", errors.New("the container engine has found no image in its archive")
	}
	if isID(names[0]) {
		return names[0], nil
	}
	found, err := e.inspectImage(ctx, names[0])
	return found.ID, err
}

// source is what an archive is read from. The engine's client reads it in a goroutine of its own.
type source struct {
	io.Reader
	failed atomic.Pointer[error]
}

// Read notes an error that is not the end.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed.Store(&err)
	}
	return n, err
}

// failure returns why the source could not be read, or nil.
func (s *source) failure() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// megabytes returns a size for people.
func megabytes(bytes int64) string {
	switch size := float64(bytes) / 1e6; {
	case size >= 9.5:
		return fmt.Sprintf("%.0f MB", size)
	default:
		return fmt.Sprintf("%.1f MB", size)
	}
}
