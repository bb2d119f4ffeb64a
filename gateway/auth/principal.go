package auth

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/authn"

	v1 "switchyard/proto/switchyard/v1"
)

// Unverified is behind a name that a client claims, where nothing verifies it.
const Unverified = " (unverified)"

// Kinds of principals, by what proved who they are.
const (
	KindNone  = "none" // authentication is off
	KindToken = "token"
	KindOIDC  = "oidc"
	KindKey   = "ssh_key"
)

// Principal is who sends a request. It must not be changed.
type Principal struct {
	// Name is what runs, events and the audit show. A name that nothing proves ends with Unverified; it is empty if the
	// client claims none.
	Name string
	Role v1.Role
	// Node is the name of the node that a token of role node belongs to.
	Node string
	// Kind says what proved the name, ID is that of the token, or the fingerprint of the key.
	Kind, ID string
	// ExpiresAt is when the proof ends; zero: never.
	ExpiresAt time.Time
}

// anonymous is a caller that has passed no lock: it may do nothing.
var anonymous = &Principal{}

// From returns who sends the request of ctx. A context that has passed no Middleware has a principal without a role.
func From(ctx context.Context) *Principal {
	if p, ok := authn.GetInfo(ctx).(*Principal); ok {
		return p
	}
	return anonymous
}

// With returns a context of a request that p sends.
func With(ctx context.Context, p *Principal) context.Context { return authn.SetInfo(ctx, p) }

// IsVerified reports whether something proves who the principal is.
func (p *Principal) IsVerified() bool {
	return p.Kind == KindToken || p.Kind == KindOIDC || p.Kind == KindKey
}

// SeesAll reports whether the principal reaches what others own.
func (p *Principal) SeesAll() bool { return p.Role.Includes(v1.Role_ROLE_OPERATOR) }

// Owns reports whether what was submitted by owner belongs to the principal. Runs of a schedule belong to no one, whatever
// a principal is called.
func (p *Principal) Owns(owner string) bool {
	return p.Role.Includes(v1.Role_ROLE_VIEWER) && p.Name != "" && !strings.HasSuffix(owner, Unverified) && owner != v1.TriggerSchedule && owner == p.Name
}

// Reaches reports whether the principal may see what was submitted by owner.
func (p *Principal) Reaches(owner string) bool { return p.SeesAll() || p.Owns(owner) }
