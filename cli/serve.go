package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/spf13/pflag"
)

// allowedHostFlag adds --allowed-host to a command that serves HTTP.
func allowedHostFlag(f *pflag.FlagSet, hosts *[]string) {
	f.StringSliceVar(hosts, "allowed-host", nil, "name under which a proxy on this machine, or a name server, has it reached by browsers and clients (repeat for more)")
}

// serve starts a stack, has it announced, and stops it when ctx is done, which
// is how such a command is meant to end.
func serve(ctx context.Context, sys *system, cfg stackConfig, announce func(*stack) error) (err error) {
	cfg.Leftovers = &sys.leftovers
	s, err := startStack(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := announce(s); err != nil {
		return err
	}
	var gone <-chan struct{} // nil, and so never, without a gateway
	if s.gateway != nil {
		gone = s.gateway.Done()
	}
	select {
	case <-ctx.Done():
		if cfg.drains() {
			sys.hurry.set(s.Hurry)
			fmt.Fprintln(sys.screen, "stopping when what runs here has ended; once more to move it now")
		} else {
			fmt.Fprintln(sys.screen, "stopping; once more to quit at once")
		}
		return nil
	case err := <-s.Failed():
		return err
	case <-gone:
		return errors.New("the gateway has stopped listening")
	}
}

// drains says that what runs on the nodes may go on for a while when they stop.
func (c stackConfig) drains() bool {
	return slices.ContainsFunc(c.Nodes, func(n nodeConfig) bool { return n.DrainTimeout > 0 })
}

// hurrying holds what the second signal does in place of ending the process; the
// third one ends it. It is safe for concurrent use.
type hurrying struct{ do atomic.Pointer[func()] }

func (h *hurrying) set(do func()) { h.do.Store(&do) }

// hurry does it once; false: there was nothing to do.
func (h *hurrying) hurry() bool {
	do := h.do.Swap(nil)
	if do == nil {
		return false
	}
	(*do)()
	return true
}
