package auth

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/authn"

	v1 "switchyard/proto/switchyard/v1"
)

// Unverified is the suffix of a claimed name without proof.
const Unverified = " (unverified)"

// The kinds of principals, by the proof of their identity.
const (
	KindNone  = "none" // authentication is off
	KindToken = "token"
	KindOIDC  = "oidc"
	KindKey   = "ssh_key"
)

// Principal is the caller of a request. It is immutable.
type Principal struct {
	// Name is the name in runs, events and the audit. An unproven name ends with Unverified; it is empty if the client
	// claims none.
	Name string
	Role v1.Role
	// Node is the name of the node that a token of role node belongs to.
	Node string
	// Kind is the kind of proof. ID is the id of the token or the fingerprint of the key.
	Kind, ID string
	// ExpiresAt is when the proof expires, or zero if it does not.
	ExpiresAt time.Time
}

// anonymous is a caller that has passed no lock. It may do nothing.
var anonymous = &Principal{}

// IsReserved reports whether a name stands for a part of the system in the owners of runs, so that it can name no caller.
func IsReserved(name string) bool { return name == v1.TriggerSchedule }

// From returns the caller of the request in ctx. If ctx has passed no Middleware, the principal has no role.
func From(ctx context.Context) *Principal {
	if p, ok := authn.GetInfo(ctx).(*Principal); ok {
		return p
	}
	return anonymous
}

// With returns a context for a request of p.
func With(ctx context.Context, p *Principal) context.Context { return authn.SetInfo(ctx, p) }

// IsVerified reports whether the identity of the principal is proven.
func (p *Principal) IsVerified() bool {
	return p.Kind == KindToken || p.Kind == KindOIDC || p.Kind == KindKey
}

// SeesAll reports whether the principal may see what others own.
func (p *Principal) SeesAll() bool { return p.Role.Includes(v1.Role_ROLE_OPERATOR) }

// NeedsApproval reports whether runs of the principal wait for an operator where runs of users do.
func (p *Principal) NeedsApproval() bool { return p.IsVerified() && !p.SeesAll() }

// Owns reports whether the principal owns what owner has submitted. Runs of a schedule belong to no one, whatever the name
// of the principal is.
func (p *Principal) Owns(owner string) bool {
	return p.Role.Includes(v1.Role_ROLE_VIEWER) && p.Name != "" && !strings.HasSuffix(owner, Unverified) && !IsReserved(owner) && owner == p.Name
}

// Reaches reports whether the principal may see what owner has submitted.
func (p *Principal) Reaches(owner string) bool { return p.SeesAll() || p.Owns(owner) }
