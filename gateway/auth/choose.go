package auth

import (
	"context"
	"strings"
)

// ByPrefix asks one of two Authenticators, by how a token begins.
type ByPrefix struct {
	Prefix string
	// With knows the tokens that begin with Prefix, Without all others.
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
