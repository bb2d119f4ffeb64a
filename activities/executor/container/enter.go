package container

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"switchyard/activities/executor"
	"switchyard/activities/executor/inside"
)

// Enter returns the inside of an attempt's container. What is started in it ends with the container, or when the attempt is left
// to a later worker.
func (e *Executor) Enter(_ context.Context, id string) (executor.Inside, error) {
	r := e.find(id)
	if r == nil || r.lifecycle.State().IsEnding() {
		return nil, executor.ErrNotRunning
	}
	return &entered{r}, nil
}

// entered is the inside of a container.
type entered struct{ r *running }

// withAttempt returns a context that ends with ctx or with the attempt.
func (r *running) withAttempt(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.life, func() { cancel(executor.ErrNotRunning) })
	return ctx, func() { stop(); cancel(nil) }
}

// errElsewhere returns the error of a request that needs the engine to be on this machine.
func errElsewhere(what string) error {
	return &executor.Refusal{Text: "the container runs on another machine, or the worker has no access to its processes: " + what}
}

// enterableAs returns the container's first process, to be entered as a user, or as the container's own user if who is "". known is
// false if the process is not on this machine.
func (i *entered) enterableAs(who string) (_ inside.Process, known bool, err error) {
	r := i.r
	if r.lifecycle.State().IsEnding() {
		return inside.Process{}, false, executor.ErrNotRunning
	}
	p, ok := r.main.enterable()
	if !ok {
		return inside.Process{}, false, nil
	}
	user, err := p.User(i.userOf(who))
	if err != nil {
		return inside.Process{}, false, err
	}
	p = p.As(user)
	p.Dir = i.dirFor(user)
	return p, true, nil
}

// userOf returns a user as the engine names it.
func (i *entered) userOf(who string) string {
	if who == "" {
		who = i.r.main.containerConfig().User
	}
	if who == "" {
		return "0"
	}
	return who
}

// dirFor returns the default working directory for commands of a user.
func (i *entered) dirFor(user inside.User) string {
	switch dir := i.r.main.containerConfig().WorkingDir; {
	case i.r.atHome && user.Home != "":
		return user.Home
	case dir != "":
		return dir
	}
	return "/"
}

// Dial connects to a port of the container.
func (i *entered) Dial(ctx context.Context, port int) (net.Conn, error) {
	p, known, err := i.enterableAs("0")
	switch {
	case err != nil:
		return nil, err
	case known:
		return p.Dial(ctx, port)
	}
	return i.dialAddress(ctx, port)
}

// dialAddress connects to a port at the container's address in its network.
func (i *entered) dialAddress(ctx context.Context, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, &executor.Refusal{Text: fmt.Sprintf("%d is not a port", port)}
	}
	guarded, done := i.r.e.engine.guard(ctx)
	c, err := i.r.e.docker.ContainerInspect(guarded, i.r.id)
	done()
	if err != nil {
		return nil, fmt.Errorf("inspect container %s: %w", i.r.name, causeOf(guarded, err))
	}
	if c.NetworkSettings != nil {
		for _, network := range c.NetworkSettings.Networks {
			if network == nil || network.IPAddress == "" {
				continue
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(network.IPAddress, fmt.Sprint(port)))
			if err != nil && ctx.Err() == nil {
				return nil, &executor.Refusal{Text: fmt.Sprintf("port %d of the container cannot be reached: %v", port, err)}
			}
			return conn, err
		}
	}
	return nil, errElsewhere("its ports cannot be reached, since it has no address of its own")
}

// Listen accepts connections on a port of the container.
func (i *entered) Listen(ctx context.Context, port int) (net.Listener, error) {
	p, known, err := i.enterableAs("0")
	switch {
	case err != nil:
		return nil, err
	case known:
		return p.Listen(ctx, port)
	}
	return nil, errElsewhere("it cannot listen on a port of it")
}

// ServeFiles serves the files of the container.
func (i *entered) ServeFiles(ctx context.Context, user string, conn io.ReadWriter) error {
	p, known, err := i.enterableAs(user)
	switch {
	case err != nil:
		return err
	case known:
		ctx, done := i.r.withAttempt(ctx)
		defer done()
		return p.ServeFiles(ctx, conn)
	}
	return errElsewhere("its files can only be copied, without SFTP")
}

// ReadTar writes files of the container to an archive.
func (i *entered) ReadTar(ctx context.Context, user, path string, to io.Writer) error {
	p, known, err := i.enterableAs(user)
	switch {
	case err != nil:
		return err
	case known:
		ctx, done := i.r.withAttempt(ctx)
		defer done()
		return p.ReadTar(ctx, path, to)
	}
	return i.readArchive(ctx, user, path, to)
}

// WriteTar unpacks an archive in the container.
func (i *entered) WriteTar(ctx context.Context, user, path string, rename bool, from io.Reader) error {
	p, known, err := i.enterableAs(user)
	switch {
	case err != nil:
		return err
	case known:
		ctx, done := i.r.withAttempt(ctx)
		defer done()
		return p.WriteTar(ctx, path, rename, from)
	case rename:
		return errElsewhere("an archive can only be unpacked in a directory that is there")
	}
	return i.writeArchive(ctx, user, path, from)
}

// refuseExec wraps the error of running a command. It returns a Refusal if the container is paused, and ErrNotRunning if it has
// ended.
func (r *running) refuseExec(err error) error {
	text := strings.ToLower(err.Error())
	switch {
	case strings.Contains(text, "is paused"):
		return &executor.Refusal{Text: "the task is paused; resume it first"}
	case cerrdefs.IsNotFound(err), strings.Contains(text, "is not running"):
		return executor.ErrNotRunning
	}
	return fmt.Errorf("run a command in container %s: %w", r.name, err)
}
