package cli

import (
	"context"
	"os"
	"os/user"

	"connectrpc.com/connect"

	"switchyard/workflows/names"
)

// claimActor is an interceptor that has each call say who sends it.
func claimActor(who string) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			if who != "" {
				req.Header().Set(names.ActorHeader, who)
			}
			return next(ctx, req)
		}
	}
}

// thisUser returns user@host as the operating system names them, or "" if it does not name the user.
func thisUser() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	host, err := os.Hostname()
	if err != nil {
		return u.Username
	}
	return u.Username + "@" + host
}
