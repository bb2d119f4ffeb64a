package cli

import (
	"context"
	"errors"
	"fmt"
)

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
		fmt.Fprintln(sys.screen, "stopping; once more to quit at once")
		return nil
	case <-gone:
		return errors.New("the gateway has stopped listening")
	}
}
