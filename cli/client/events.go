package client

import (
	"cmp"
	"context"

	v1 "switchyard/proto/switchyard/v1"
)

// Events returns as many events as the page size of a request allows. The gateway may cut a page short because it
// bounds how much it reads for one; Events then requests the rest.
func (a *Client) Events(ctx context.Context, req *v1.ListRunEventsRequest) (*v1.ListRunEventsResponse, error) {
	all := &v1.ListRunEventsResponse{}
	for limit := req.GetPageSize(); ; {
		page, err := Call(ctx, a, a.Runs.ListRunEvents, req)
		if err != nil {
			return nil, err
		}
		all.Items, all.NextPageToken = append(all.Items, page.GetItems()...), page.GetNextPageToken()
		all.Warnings = append(all.Warnings, page.GetWarnings()...)
		all.After = cmp.Or(page.GetAfter(), all.After)
		req.PageSize, req.PageToken = limit-int32(len(all.Items)), page.GetNextPageToken()
		if all.NextPageToken == "" || req.PageSize <= 0 {
			return all, nil
		}
	}
}
