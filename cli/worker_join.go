package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"switchyard/activities/gatewayclient"
	"switchyard/activities/store"
	"switchyard/cli/client"
	"switchyard/cli/credentials"
	"switchyard/cli/doctor"
	"switchyard/cli/exit"
	"switchyard/cli/stack"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// joinTimeout is how long a starting worker waits for a gateway that does not answer.
	joinTimeout = 5 * time.Second
	// joinPause is the interval before a worker tries an unreachable gateway again.
	joinPause = 5 * time.Second
)

// nodeToken returns a function that returns the token of a worker for its gateways. A token in a file may be replaced while
// the worker runs.
func (s *system) nodeToken(cmd *cobra.Command, gateways gatewayclient.List) (func() string, error) {
	if path := stringFlag(cmd, tokenFileFlagName); path != "" {
		source, err := credentials.NewSource(path)
		if err != nil {
			return nil, err
		}
		return source.Token, nil
	}
	token, err := s.token(cmd, gateways)
	return func() string { return token }, err
}

// gatewaysOf returns the addresses of a worker's gateways: its store, if that is a gateway.
func gatewaysOf(location, gateways string) string {
	if store.IsGateway(location) {
		return location
	}
	return gateways
}

// checkNode returns an error unless the gateway accepts the token as that of the node.
func checkNode(ctx context.Context, a *client.Client, node string) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	who, err := client.Call(ctx, a, a.Auth.WhoAmI, &v1.WhoAmIRequest{})
	if err != nil {
		if refused, ok := errors.AsType[*exit.Error](err); ok && refused.Code == exit.CodeNotAllowed && refused.Hint == "" {
			refused.Hint = doctor.JoinHint(node)
		}
		return err
	}
	if err := doctor.CheckNode(who, node); err != nil {
		return &exit.Error{Code: exit.CodeNotAllowed, Hint: doctor.JoinHint(node), Err: err}
	}
	return nil
}

// serveNode serves a worker whose store is a gateway, once the gateway accepts its token. If the gateway is
// unreachable, the worker starts and serveNode checks the token later; the worker stops if the gateway refuses it.
func (s *system) serveNode(cmd *cobra.Command, cfg stack.Config, node string, announce func(*stack.Stack) error) error {
	if !store.IsGateway(cfg.Store) {
		return serveStack(cmd.Context(), s, cfg, announce)
	}
	a, err := s.openClientAt(cmd, cfg.Store)
	if err != nil {
		return err
	}
	defer a.Close()
	err = checkNode(cmd.Context(), a, node)
	if err == nil {
		return serveStack(cmd.Context(), s, cfg, announce)
	}
	if exit.CodeOf(cmd.Context(), err) != exit.CodeSystem {
		return err
	}
	cfg.Logger.Warn("the gateway does not answer; the worker checks its token once it does", "gateway", a.URL(), "error", err)
	ctx, stop := context.WithCancelCause(cmd.Context())
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(joinPause):
			}
			switch err := checkNode(ctx, a, node); {
			case err == nil:
				return
			case exit.CodeOf(ctx, err) == exit.CodeNotAllowed:
				stop(err)
				return
			}
		}
	}()
	err = serveStack(ctx, s, cfg, announce)
	stop(nil)
	<-asked
	if refused := context.Cause(ctx); exit.CodeOf(ctx, refused) == exit.CodeNotAllowed {
		return errors.Join(refused, err)
	}
	return err
}
