package client

import (
	"context"

	v1 "switchyard/proto/switchyard/v1"
)

// InstancePages calls take for each page of a task's instances, in order of their index.
func (a *Client) InstancePages(ctx context.Context, run, task string, take func([]*v1.Instance) error) error {
	req := &v1.ListInstancesRequest{Id: run, Task: task, PageSize: 10_000}
	for {
		page, err := Call(ctx, a, a.Runs.ListInstances, req)
		if err != nil {
			return err
		}
		if err := take(page.GetItems()); err != nil {
			return err
		}
		if req.PageToken = page.GetNextPageToken(); req.PageToken == "" {
			return nil
		}
	}
}

// Instances returns as many instances as the page size of a request allows. The gateway may cut a page short because of
// its size in bytes; Instances then requests the rest.
func (a *Client) Instances(ctx context.Context, req *v1.ListInstancesRequest) (*v1.ListInstancesResponse, error) {
	all := &v1.ListInstancesResponse{}
	for limit := req.GetPageSize(); ; {
		page, err := Call(ctx, a, a.Runs.ListInstances, req)
		if err != nil {
			return nil, err
		}
		all.Items, all.NextPageToken = append(all.Items, page.GetItems()...), page.GetNextPageToken()
		req.PageSize, req.PageToken, req.First = limit-int32(len(all.Items)), page.GetNextPageToken(), 0
		if all.NextPageToken == "" || req.PageSize <= 0 {
			return all, nil
		}
	}
}
