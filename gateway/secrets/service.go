package secrets

import (
	"cmp"
	"context"
	"errors"
	"sort"

	"connectrpc.com/connect"

	"switchyard/activities/secrets/vault"
	"switchyard/gateway/auth"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/nearest"
)

// defaultPage is the page size of a request without one.
const defaultPage = 1000

// Service implements the calls for people. It is safe for concurrent use.
type Service struct {
	// Vault holds the secrets, or is nil if this gateway keeps none.
	Vault *vault.Vault
}

// SetSecret stores a secret.
func (s Service) SetSecret(ctx context.Context, req *connect.Request[v1.SetSecretRequest]) (*connect.Response[v1.SetSecretResponse], error) {
	if err := s.checkEnabled(); err != nil {
		return nil, err
	}
	role := cmp.Or(req.Msg.GetRole(), v1.RoleOperator)
	if by := auth.From(ctx); !by.Role.Includes(v1.ParseRole(role)) {
		return nil, connect.NewError(connect.CodePermissionDenied, errors.New("a secret for the role "+role+" can only be set by callers with that role; "+by.Name+" has the role "+by.Role.Word()))
	}
	set, err := s.Vault.Set(ctx, req.Msg.GetName(), req.Msg.GetValue(), role, auth.From(ctx).Name)
	if err != nil {
		return nil, s.toConnectError(ctx, req.Msg.GetName(), err)
	}
	return connect.NewResponse(&v1.SetSecretResponse{Secret: set}), nil
}

// ListSecrets lists the secrets.
func (s Service) ListSecrets(ctx context.Context, req *connect.Request[v1.ListSecretsRequest]) (*connect.Response[v1.ListSecretsResponse], error) {
	if err := s.checkEnabled(); err != nil {
		return nil, err
	}
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	var first string // name of the first secret of the page
	if token := req.Msg.GetPageToken(); token != "" {
		if first, _, err = pages.Place(token); err != nil {
			return nil, err
		}
	}
	all, warnings, err := s.Vault.List(ctx)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(int(req.Msg.GetPageSize()), defaultPage)
	all = all[sort.Search(len(all), func(i int) bool { return all[i].GetName() >= first }):]
	res := &v1.ListSecretsResponse{Items: all[:min(len(all), limit)], Warnings: warnings}
	if len(all) > limit {
		res.NextPageToken = pages.Token(all[limit].GetName(), "")
	}
	return connect.NewResponse(res), nil
}

// DeleteSecret deletes a secret.
func (s Service) DeleteSecret(ctx context.Context, req *connect.Request[v1.DeleteSecretRequest]) (*connect.Response[v1.DeleteSecretResponse], error) {
	if err := s.checkEnabled(); err != nil {
		return nil, err
	}
	deleted, err := s.Vault.Delete(ctx, req.Msg.GetName())
	if err != nil {
		return nil, s.toConnectError(ctx, req.Msg.GetName(), err)
	}
	return connect.NewResponse(&v1.DeleteSecretResponse{Secret: deleted}), nil
}

// checkEnabled returns an error if this gateway keeps no secrets.
func (s Service) checkEnabled() error {
	if s.Vault == nil {
		return rpcerror.WrongState("this gateway stores no secrets because it has no key file; start it with --secrets-key FILE")
	}
	return nil
}

// toConnectError converts an error of the vault about a name to the code that clients receive, with the nearest name for an
// unknown one.
func (s Service) toConnectError(ctx context.Context, name string, err error) error {
	switch {
	case errors.Is(err, vault.ErrUnknown):
		return rpcerror.Missing("secret", name, nearest.DidYouMean(name, s.names(ctx)))
	case errors.Is(err, vault.ErrInvalid):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case errors.Is(err, vault.ErrKey):
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return err
}

// names returns the names of the secrets for a hint, or nil if they cannot be listed.
func (s Service) names(ctx context.Context) (names []string) {
	all, _, err := s.Vault.List(ctx)
	if err != nil {
		return nil
	}
	for _, one := range all {
		names = append(names, one.GetName())
	}
	return names
}
