package cli

import (
	"context"
	"sync"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// fakeKeys records its requests.
type fakeKeys struct {
	switchyardv1connect.UnimplementedKeyServiceHandler

	mu      sync.Mutex
	added   []string
	removed []*v1.RemoveKeyRequest
	list    *v1.ListKeysResponse
}

func (f *fakeKeys) AddKey(_ context.Context, req *connect.Request[v1.AddKeyRequest]) (*connect.Response[v1.AddKeyResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.added = append(f.added, req.Msg.GetPublicKey())
	return connect.NewResponse(&v1.AddKeyResponse{Key: &v1.Key{Fingerprint: "SHA256:x", Name: "ann", Role: v1.RoleUser}}), nil
}

func (f *fakeKeys) ListKeys(context.Context, *connect.Request[v1.ListKeysRequest]) (*connect.Response[v1.ListKeysResponse], error) {
	return connect.NewResponse(f.list), nil
}

func (f *fakeKeys) RemoveKey(_ context.Context, req *connect.Request[v1.RemoveKeyRequest]) (*connect.Response[v1.RemoveKeyResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed = append(f.removed, req.Msg)
	return connect.NewResponse(&v1.RemoveKeyResponse{Key: &v1.Key{Fingerprint: req.Msg.GetFingerprint(), Name: "ann", Role: v1.RoleUser}}), nil
}
