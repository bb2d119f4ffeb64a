package tokens

import (
	"cmp"
	"context"
	"crypto/sha256"
	"sort"
	"time"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/auth"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/names"
)

const (
	// defaultLifetime is the lifetime of a token whose request sets none.
	defaultLifetime = 90 * 24 * time.Hour
	defaultPage     = 1000
)

// Service implements AuthService. It is safe for concurrent use.
type Service struct {
	// Registry holds the tokens, or is nil if authentication is off.
	Registry *Registry
	// Version is the version of the gateway.
	Version string
}

var _ switchyardv1connect.AuthServiceHandler = Service{}

// WhoAmI returns the identity of the caller.
func (s Service) WhoAmI(ctx context.Context, _ *connect.Request[v1.WhoAmIRequest]) (*connect.Response[v1.WhoAmIResponse], error) {
	p := auth.From(ctx)
	res := &v1.WhoAmIResponse{Name: p.Name, Role: p.Role.Word(), Node: p.Node, Kind: p.Kind, Version: s.Version}
	if !p.ExpiresAt.IsZero() {
		res.ExpiresAt = timestamppb.New(p.ExpiresAt)
	}
	return connect.NewResponse(res), nil
}

// CreateToken creates a token.
func (s Service) CreateToken(ctx context.Context, req *connect.Request[v1.CreateTokenRequest]) (*connect.Response[v1.CreateTokenResponse], error) {
	if err := s.checkEnabled(); err != nil {
		return nil, err
	}
	m := req.Msg
	lifetime, err := lifetimeOf(m)
	if err != nil {
		return nil, err
	}
	secret, created, err := s.Registry.Create(ctx, &v1.Token{Name: m.GetName(), Role: m.GetRole(), Node: m.GetNode(), CreatedBy: auth.From(ctx).Name}, lifetime)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.CreateTokenResponse{Secret: secret, Token: created}), nil
}

// lifetimeOf validates a request and returns the lifetime of its token, or 0 if the token never expires. The gateway has checked
// the rules of the message.
func lifetimeOf(m *v1.CreateTokenRequest) (time.Duration, error) {
	isNode := m.GetRole() == v1.RoleNode
	switch {
	case auth.IsReserved(m.GetName()):
		return 0, rpcerror.Invalid("the name %s is reserved: it stands for runs that a schedule started; choose another name", m.GetName())
	case isNode && m.GetNode() == "":
		return 0, rpcerror.Invalid("a token with the role node needs a node; set node (--node)")
	case !isNode && m.GetNode() != "":
		return 0, rpcerror.Invalid("a token with the role %s cannot be bound to a node; remove node or use the role node", m.GetRole())
	case isNode && !names.IsNode(m.GetNode()):
		return 0, rpcerror.Invalid("%q is not the name of a node: a name has at most %d of a-z, 0-9, '.' and '-', the first and the last a letter or digit", m.GetNode(), names.MaxNode)
	case m.GetNeverExpires() && m.GetExpiresIn() != nil:
		return 0, rpcerror.Invalid("expires_in (%s) and never_expires are mutually exclusive; remove one", m.GetExpiresIn().AsDuration())
	case m.GetExpiresIn() != nil:
		return m.GetExpiresIn().AsDuration(), nil
	case isNode, m.GetNeverExpires():
		return 0, nil
	}
	return defaultLifetime, nil
}

// CheckRecord returns an error unless a record from another deployment is that of an active token which CreateToken could have made.
func CheckRecord(record *v1.TokenRecord) error {
	t := record.GetToken()
	switch {
	case !isID(t.GetId()):
		return rpcerror.Invalid("%.64q is not the id of a token", t.GetId())
	case IsFirst(t):
		return rpcerror.Invalid("token %s is the first token of its deployment, and each deployment has its own; leave it out", t.GetId())
	case len(record.GetSecretSha256()) != sha256.Size:
		return rpcerror.Invalid("token %s has no SHA-256 of its secret part", t.GetId())
	case t.GetRevokedAt() != nil:
		return rpcerror.Invalid("token %s was revoked; leave it out", t.GetId())
	}
	req := &v1.CreateTokenRequest{Name: t.GetName(), Role: t.GetRole(), Node: t.GetNode()}
	if err := protovalidate.Validate(req); err != nil {
		return rpcerror.Invalid("token %s: %w", t.GetId(), err)
	}
	_, err := lifetimeOf(req)
	return err
}

// ListTokens lists the tokens.
func (s Service) ListTokens(ctx context.Context, req *connect.Request[v1.ListTokensRequest]) (*connect.Response[v1.ListTokensResponse], error) {
	if err := s.checkEnabled(); err != nil {
		return nil, err
	}
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	var name, id string // of the first token of the page
	if token := req.Msg.GetPageToken(); token != "" {
		if name, id, err = pages.Place(token); err != nil {
			return nil, err
		}
	}
	all, warnings, err := s.Registry.List(ctx)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(int(req.Msg.GetPageSize()), defaultPage)
	all = all[sort.Search(len(all), func(i int) bool {
		return cmp.Or(cmp.Compare(all[i].GetName(), name), cmp.Compare(all[i].GetId(), id)) >= 0
	}):]
	res := &v1.ListTokensResponse{Items: all[:min(len(all), limit)], Warnings: warnings}
	if len(all) > limit {
		res.NextPageToken = pages.Token(all[limit].GetName(), all[limit].GetId())
	}
	return connect.NewResponse(res), nil
}

// RevokeToken revokes a token.
func (s Service) RevokeToken(ctx context.Context, req *connect.Request[v1.RevokeTokenRequest]) (*connect.Response[v1.RevokeTokenResponse], error) {
	if err := s.checkEnabled(); err != nil {
		return nil, err
	}
	revoked, err := s.Registry.Revoke(ctx, req.Msg.GetId(), auth.From(ctx).Name)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.RevokeTokenResponse{Token: revoked}), nil
}

// checkEnabled returns an error if authentication is off.
func (s Service) checkEnabled() error {
	if s.Registry == nil {
		return rpcerror.WrongState("authentication is off on this gateway; start it with `--auth tokens`")
	}
	return nil
}
