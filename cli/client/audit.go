package client

import (
	"context"

	v1 "switchyard/proto/switchyard/v1"
)

// AuditEntries returns a page of at most size entries that begins at token. The gateway may cut a page short because it
// bounds how much it reads for one; AuditEntries then requests the rest.
func (a *Client) AuditEntries(ctx context.Context, req *v1.ListAuditEntriesRequest, size int32, token string) (*v1.ListAuditEntriesResponse, error) {
	all := &v1.ListAuditEntriesResponse{NextPageToken: token}
	for {
		req.PageSize, req.PageToken = size-int32(len(all.GetItems())), all.GetNextPageToken()
		page, err := Call(ctx, a, a.Audit.ListAuditEntries, req)
		if err != nil {
			return nil, err
		}
		all.Items, all.NextPageToken = append(all.Items, page.GetItems()...), page.GetNextPageToken()
		if all.NextPageToken == "" || len(all.Items) >= int(size) {
			return all, nil
		}
	}
}
