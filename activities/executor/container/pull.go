package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"

	v1 "switchyard/proto/switchyard/v1"
)

// pull pulls the image of a spec, or waits for a pull in progress.
func (st *imageStore) pull(ctx context.Context, spec *v1.ContainerSpec, notify func(string)) error {
	name := spec.GetImage()
	named, err := reference.ParseNormalizedNamed(name)
	switch {
	case isID(name):
		return fmt.Errorf("image %s is not on %s, and an id cannot be pulled; use the image's name in a registry", name, hostname())
	case err != nil:
		return fmt.Errorf("image %q: %w", name, err)
	}
	auth, err := st.credentials(spec.GetRegistryAuth(), reference.Domain(named))
	if err != nil {
		return fmt.Errorf("pull image %s: %w", name, err)
	}
	// Attempts with other credentials may get another image, or none.
	_, err = st.pulls.Do(ctx, spec.GetRegistryAuth()+" "+name, notify, func(ctx context.Context, say func(string)) ([]string, error) {
		say("pulling image " + name)
		return nil, st.pullNow(ctx, name, auth, say)
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("pull image %s: %w", name, auth.explain(err))
}

// pullNow makes the engine pull an image.
func (st *imageStore) pullNow(ctx context.Context, name string, auth credentials, say func(string)) error {
	options := image.PullOptions{}
	if !auth.isEmpty() {
		header, err := registry.EncodeAuthConfig(auth.config)
		if err != nil {
			return err
		}
		options.RegistryAuth = header
	}
	ctx, watch := st.watchSilence(ctx)
	defer watch.stop()
	stream, err := st.docker.ImagePull(ctx, name, options)
	if err != nil {
		return causeOfTimeout(ctx, err)
	}
	defer stream.Close()
	return causeOfTimeout(ctx, follow(watch.reader(stream), newProgress(say, time.Now)))
}

// errSilent reports that a pull or a load was abandoned for lack of progress.
var errSilent = errors.New("the container engine reported no progress for too long")

// silence is a watchdog that ends a context when nothing has been read for too long.
type silence struct {
	timer   *time.Timer
	timeout time.Duration
	cancel  context.CancelCauseFunc
}

// watchSilence returns a context that ends when the readers of the watch deliver nothing
// for too long, from now on. The caller stops the watch.
func (st *imageStore) watchSilence(ctx context.Context) (context.Context, *silence) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &silence{timeout: silenceTimeout, cancel: cancel}
	if st.silence > 0 {
		s.timeout = st.silence
	}
	s.timer = time.AfterFunc(s.timeout, func() { cancel(fmt.Errorf("%w (%s)", errSilent, s.timeout)) })
	return ctx, s
}

func (s *silence) stop() {
	s.timer.Stop()
	s.cancel(nil)
}

// reader returns a reader that resets the watch whenever it reads something.
func (s *silence) reader(r io.Reader) io.Reader { return &watched{r, s} }

type watched struct {
	io.Reader
	silence *silence
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.silence.timer.Reset(w.silence.timeout)
	}
	return n, err
}

// explain returns the error of a pull with a remedy and without secrets.
func (c credentials) explain(err error) error {
	text := err.Error()
	for _, secret := range []string{c.config.Password, c.config.IdentityToken} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	denied := false
	for _, word := range []string{"unauthorized", "denied", "authentication required", "no basic auth"} {
		denied = denied || strings.Contains(strings.ToLower(text), word)
	}
	switch {
	case !denied:
	case c.name != "":
		text += fmt.Sprintf("; the registry rejected the credentials %s of %s", c.name, hostname())
	case !c.isEmpty():
		text += "; the registry rejected the credentials of this node's Docker configuration"
	default:
		text += fmt.Sprintf("; there are no credentials for %s: start the node with --registry-auth NAME=FILE and set spec.registryAuth, or run docker login there", c.host)
		if c.helper != "" {
			text += fmt.Sprintf(" (the credential helper %s of the Docker configuration is not used)", c.helper)
		}
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}
