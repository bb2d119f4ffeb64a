package cli

import (
	"context"
	"sync"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// fakeSecrets records its requests.
type fakeSecrets struct {
	switchyardv1connect.UnimplementedSecretServiceHandler

	mu      sync.Mutex
	set     []*v1.SetSecretRequest
	deleted []string
	list    *v1.ListSecretsResponse
}

func (f *fakeSecrets) SetSecret(_ context.Context, req *connect.Request[v1.SetSecretRequest]) (*connect.Response[v1.SetSecretResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set = append(f.set, req.Msg)
	return connect.NewResponse(&v1.SetSecretResponse{Secret: &v1.Secret{Name: req.Msg.GetName(), Role: req.Msg.GetRole(), Version: int32(len(f.set)), SetAt: after(0), SetBy: "ann", KeyId: "5f3a91c2"}}), nil
}

func (f *fakeSecrets) ListSecrets(context.Context, *connect.Request[v1.ListSecretsRequest]) (*connect.Response[v1.ListSecretsResponse], error) {
	return connect.NewResponse(f.list), nil
}

func (f *fakeSecrets) DeleteSecret(_ context.Context, req *connect.Request[v1.DeleteSecretRequest]) (*connect.Response[v1.DeleteSecretResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deleted = append(f.deleted, req.Msg.GetName())
	return connect.NewResponse(&v1.DeleteSecretResponse{Secret: &v1.Secret{Name: req.Msg.GetName(), Role: v1.RoleUser, Version: 3}}), nil
}
