package gateway

import (
	"context"

	"switchyard/gateway/auth"
)

// actor returns the name of the caller of ctx as runs and events record it, or "" if the caller is unknown.
func actor(ctx context.Context) string { return auth.From(ctx).Name }
