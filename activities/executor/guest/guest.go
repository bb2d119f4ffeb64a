package guest

import (
	"context"
	"fmt"
	"path"
	"time"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
)

// Options configure how a machine is reached.
type Options struct {
	// Connect logs in to the machine. It is called again when the connection has broken or has no room for another
	// session.
	Connect func(ctx context.Context) (*ssh.Client, error)
	// User is the name of the user that Connect logs in as.
	User string
	// Env holds variables for every program.
	Env map[string]string
	// Dir is the directory in which programs start and relative paths begin; "" is the home of the user.
	Dir string
	// Life is the context of the attempt. Its end also ends all calls. If it is nil, the Guest lasts until Close.
	Life context.Context
	// KeepAlive is the interval of keep-alives on a connection, and how long the machine may take to answer one; 0
	// means 15 s.
	KeepAlive time.Duration
	// IsPaused reports whether the machine is suspended and answers no keep-alives. If it is nil, the machine is never
	// suspended.
	IsPaused func() bool
}

// Guest is the inside of a machine.
type Guest struct {
	options Options
	life    context.Context
	end     context.CancelCauseFunc
	// sessions and network have separate connections: dropbear 2022.83 closes sessions that begin while port
	// connections come and go.
	sessions, network pool
}

var _ executor.Inside = (*Guest)(nil)

// New returns the inside of a machine. It connects on first use, and lasts until Close or the end of Options.Life.
func New(o Options) *Guest {
	if o.Life == nil {
		o.Life = context.Background()
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = 15 * time.Second
	}
	if o.IsPaused == nil {
		o.IsPaused = func() bool { return false }
	}
	g := &Guest{options: o}
	life, end := context.WithCancelCause(context.Background())
	g.life, g.end = life, end
	for _, p := range []*pool{&g.sessions, &g.network} {
		p.connect, p.life, p.keepAlive, p.isPaused = o.Connect, life, o.KeepAlive, o.IsPaused
	}
	g.sessions.isForSessions = true
	stop := context.AfterFunc(o.Life, func() { end(executor.ErrNotRunning) })
	context.AfterFunc(life, func() {
		stop()
		// Give programs time to be hung up on.
		time.AfterFunc(closeWait, func() {
			g.sessions.close()
			g.network.close()
		})
	})
	return g
}

// Close ends all calls in the machine, and its connections soon after. A second Close is a no-op.
func (g *Guest) Close() error {
	g.end(executor.ErrNotRunning)
	return nil
}

// attemptContext returns a context that ends with ctx or with the attempt.
func (g *Guest) attemptContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.life, func() { cancel(context.Cause(g.life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// checkUser refuses any user other than the one that logs in.
func (g *Guest) checkUser(who string) error {
	own := g.options.User
	if who == "" || who == own || own == "root" && who == "0" {
		return nil
	}
	help := "use sudo inside it"
	if own == "root" {
		help = "use su inside it"
	}
	return refuse("the machine only accepts user %s, not %q; omit the user and %s", own, who, help)
}

// resolve returns a path relative to the directory in which programs start.
func (g *Guest) resolve(name string) string {
	if g.options.Dir == "" || path.IsAbs(name) {
		return name
	}
	return path.Join(g.options.Dir, name)
}

func refuse(format string, args ...any) error {
	return &executor.Refusal{Text: fmt.Sprintf(format, args...)}
}

// await runs do and returns its error, or the cause of ctx if ctx ends first. In that case do continues, and late is
// called after do has succeeded.
func await(ctx context.Context, do func() error, late func()) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	done := make(chan error)
	go func() {
		err := do()
		select {
		case done <- err:
		case <-ctx.Done():
			if err == nil && late != nil {
				late()
			}
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
