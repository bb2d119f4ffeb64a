package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/spf13/pflag"

	"switchyard/cli/stack"
)

// allowedHostFlag adds --allowed-host to a command that serves HTTP.
func allowedHostFlag(f *pflag.FlagSet, hosts *[]string) {
	f.StringSliceVar(hosts, "allowed-host", nil, "additional host name under which browsers and clients reach the gateway, through a local proxy or a DNS entry; may be repeated")
}

// serveStack starts a stack, announces it, and stops it when ctx ends, which is the normal end of such a command, even if a part does
// not stop in time because what it needs is away.
func serveStack(ctx context.Context, sys *system, cfg stack.Config, announce func(*stack.Stack) error) (err error) {
	cfg.Version, cfg.ExitFolders = version(), &sys.exitFolders
	s, err := stack.Start(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = servedResult(ctx, cfg.Logger, err, s.Stop()) }()
	if err := announce(s); err != nil {
		return err
	}
	notifyServiceManager(sys.getenv, cfg.Logger, "READY=1")
	var gone <-chan struct{} // nil, which blocks for ever, without a gateway
	if g := s.Gateway(); g != nil {
		gone = g.Done()
	}
	select {
	case <-ctx.Done():
		notifyServiceManager(sys.getenv, cfg.Logger, stopping(cfg))
		if cfg.Drains() {
			sys.secondSignal.set(s.SkipDrain)
			fmt.Fprintln(sys.screen, drainNotice(cfg))
		} else {
			fmt.Fprintln(sys.screen, "stopping; interrupt again to quit at once")
		}
		return nil
	case err := <-s.Failed():
		return err
	case <-gone:
		return errors.New("the gateway has stopped listening")
	}
}

// servedResult returns the result of a command that has served: why it ended, unless ctx ended it, and what has not stopped.
func servedResult(ctx context.Context, log *slog.Logger, err, stop error) error {
	if stop != nil && err == nil && ctx.Err() != nil {
		log.Warn("not everything has stopped in order", "error", stop)
		return nil
	}
	return errors.Join(err, stop)
}

// drainNotice says for a person what the nodes of a stopping process wait for.
func drainNotice(cfg stack.Config) string {
	if cfg.KeepsOnStop() {
		return "stopping when the tasks that cannot run on without the worker have ended; interrupt again to move them now"
	}
	return "stopping when the running tasks have ended; interrupt again to move them now"
}

// secondSignal holds the action of the second signal, which replaces the end of the process; the third signal ends it.
// It is safe for concurrent use.
type secondSignal struct{ do atomic.Pointer[func()] }

// set makes the second signal call do. nil ends that.
func (h *secondSignal) set(do func()) {
	if do == nil {
		h.do.Store(nil)
		return
	}
	h.do.Store(&do)
}

// fire runs the action once and reports whether there was one.
func (h *secondSignal) fire() bool {
	do := h.do.Swap(nil)
	if do == nil {
		return false
	}
	(*do)()
	return true
}
