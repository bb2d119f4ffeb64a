package gateway

import (
	"context"

	"switchyard/gateway/auth"
)

// actor returns who sends the request that ctx is of, as runs and events show it, or "" if that is not known.
func actor(ctx context.Context) string { return auth.From(ctx).Name }
