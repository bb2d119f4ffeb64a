package cli

import (
	"context"
	"sync"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// fakeAudit serves audit entries in pages of at most one entry.
type fakeAudit struct {
	switchyardv1connect.UnimplementedAuditServiceHandler

	mu      sync.Mutex
	entries []*v1.AuditEntry
	asked   []*v1.ListAuditEntriesRequest
}

func (f *fakeAudit) ListAuditEntries(_ context.Context, req *connect.Request[v1.ListAuditEntriesRequest]) (*connect.Response[v1.ListAuditEntriesResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, req.Msg)
	at := len(req.Msg.GetPageToken())
	res := &v1.ListAuditEntriesResponse{Items: f.entries[at:min(at+1, len(f.entries))]}
	if at+1 < len(f.entries) {
		res.NextPageToken = req.Msg.GetPageToken() + "x"
	}
	return connect.NewResponse(res), nil
}
