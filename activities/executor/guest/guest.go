package guest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
)

// Options are how a machine is reached.
type Options struct {
	// Connect logs in to the machine. It is called again when the connection has broken, or has no room for another session.
	Connect func(ctx context.Context) (*ssh.Client, error)
	// User is the name of the user whom Connect logs in as.
	User string
	// Env are variables of every program.
	Env map[string]string
	// Dir is the directory in which programs start and paths begin; "" is the home of the user.
	Dir string
	// Life ends with the attempt, and with it all that was begun. Nil lasts until Close.
	Life context.Context
	// KeepAlive is how often a connection is asked for a sign of life, and how long the machine may take to answer; 0 is 15 s.
	KeepAlive time.Duration
	// IsPaused reports whether the machine stands still, and gives no sign of life until it continues. Nil means that it never does.
	IsPaused func() bool
}

// Guest is the inside of a machine.
type Guest struct {
	options Options
	life    context.Context
	end     context.CancelCauseFunc
	// sessions and network have connections of their own: dropbear 2022.83 closes sessions that begin while connections to ports come
	// and go.
	sessions, network pool
}

var _ executor.Inside = (*Guest)(nil)

// New returns the inside of a machine. It connects when it is used. Close ends it.
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
		// A program is hung up on first.
		time.AfterFunc(closeWait, func() {
			g.sessions.close()
			g.network.close()
		})
	})
	return g
}

// Close ends all that was begun in the machine, and its connections soon after. A second Close does nothing.
func (g *Guest) Close() error {
	g.end(executor.ErrNotRunning)
	return nil
}

// during returns a context that ends with ctx, and with the attempt.
func (g *Guest) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.life, func() { cancel(context.Cause(g.life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// checkUser refuses to act as another user than the one who logs in.
func (g *Guest) checkUser(who string) error {
	own := g.options.User
	if who == "" || who == own || own == "root" && who == "0" {
		return nil
	}
	help := "use sudo inside it"
	if own == "root" {
		help = "use su inside it"
	}
	return refuse("the machine is entered as %s, not as %q; leave the user out, and %s", own, who, help)
}

// resolve returns a path from where programs start.
func (g *Guest) resolve(name string) string {
	if g.options.Dir == "" || path.IsAbs(name) {
		return name
	}
	return path.Join(g.options.Dir, name)
}

func refuse(format string, args ...any) error {
	return &executor.Refusal{Text: fmt.Sprintf(format, args...)}
}

// await runs do and returns its error, or that of ctx when that ends first. Then do continues, and late is called after it if it
// succeeds.
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

// isRefusal reports whether an error is a Refusal.
func isRefusal(err error) bool {
	_, ok := errors.AsType[*executor.Refusal](err)
	return ok
}
