package cli

import (
	"context"
	"fmt"
	"sync"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// fakePrivateKey is the private key that fakeVps creates.
const fakePrivateKey = "-----BEGIN OPENSSH PRIVATE KEY-----\nbm90IG9uZQ==\n-----END OPENSSH PRIVATE KEY-----\n"

// fakeVps records its requests. It answers reads of a machine from a list, in order, and repeats the last answer.
type fakeVps struct {
	switchyardv1connect.UnimplementedVpsServiceHandler

	mu      sync.Mutex
	created []*v1.CreateVpsRequest
	listed  []*v1.ListVpsRequest
	steered []string
	looks   []*v1.Vps
	list    *v1.ListVpsResponse
	existed bool
	fail    error
}

func (f *fakeVps) CreateVps(_ context.Context, req *connect.Request[v1.CreateVpsRequest]) (*connect.Response[v1.CreateVpsResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.created = append(f.created, req.Msg)
	res := &v1.CreateVpsResponse{Id: "vps-x", Task: "vps", Existed: f.existed}
	if req.Msg.GetGenerateKey() {
		res.PrivateKey, res.PublicKey = fakePrivateKey, "ssh-ed25519 AAAA vps"
	}
	return connect.NewResponse(res), f.fail
}

func (f *fakeVps) GetVps(context.Context, *connect.Request[v1.GetVpsRequest]) (*connect.Response[v1.GetVpsResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.looks[0]
	if len(f.looks) > 1 {
		f.looks = f.looks[1:]
	}
	return connect.NewResponse(&v1.GetVpsResponse{Vps: m}), nil
}

func (f *fakeVps) ListVps(_ context.Context, req *connect.Request[v1.ListVpsRequest]) (*connect.Response[v1.ListVpsResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listed = append(f.listed, req.Msg)
	return connect.NewResponse(f.list), nil
}

func (f *fakeVps) StopVps(_ context.Context, req *connect.Request[v1.StopVpsRequest]) (*connect.Response[v1.StopVpsResponse], error) {
	return connect.NewResponse(&v1.StopVpsResponse{Id: req.Msg.GetId(), Task: "vps"}), f.steer("stop", req.Msg)
}

func (f *fakeVps) RestartVps(_ context.Context, req *connect.Request[v1.RestartVpsRequest]) (*connect.Response[v1.RestartVpsResponse], error) {
	return connect.NewResponse(&v1.RestartVpsResponse{Id: req.Msg.GetId(), Task: "vps"}), f.steer("restart", req.Msg)
}

func (f *fakeVps) KillVps(_ context.Context, req *connect.Request[v1.KillVpsRequest]) (*connect.Response[v1.KillVpsResponse], error) {
	return connect.NewResponse(&v1.KillVpsResponse{Id: req.Msg.GetId(), Task: "vps"}), f.steer("kill", req.Msg)
}

func (f *fakeVps) steer(action string, req interface {
	GetId() string
	GetTask() string
	GetReason() string
}) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steered = append(f.steered, fmt.Sprintf("%s %s %q %q", action, req.GetId(), req.GetTask(), req.GetReason()))
	return f.fail
}
