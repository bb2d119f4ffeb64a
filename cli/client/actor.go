package client

import (
	"context"
	"os"
	"os/user"

	"connectrpc.com/connect"

	"switchyard/workflows/names"
)

// claimActor returns an interceptor that adds the name of the user to each call.
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

// thisUser returns user@host as the operating system reports it, or "" if the user is unknown.
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
