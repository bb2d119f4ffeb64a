package auth

import (
	"context"
	"strings"
)

// ByPrefix selects one of two Authenticators by the prefix of the token.
type ByPrefix struct {
	Prefix string
	// With authenticates tokens that begin with Prefix, and Without all others.
	With, Without Authenticator
}

var _ Authenticator = ByPrefix{}

// Authenticate returns the principal of a token.
func (b ByPrefix) Authenticate(ctx context.Context, bearer string) (*Principal, error) {
	if strings.HasPrefix(bearer, b.Prefix) {
		return b.With.Authenticate(ctx, bearer)
	}
	return b.Without.Authenticate(ctx, bearer)
}
