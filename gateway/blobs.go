package gateway

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

const (
	// maxBlobMessageBytes leaves room for a key beside the largest value.
	maxBlobMessageBytes = store.MaxValueBytes + 64<<10
	// defaultBlobPage is how many keys a page holds that names no size.
	defaultBlobPage = 1000
)

// blobs answers the calls of BlobService from the gateway's store. It takes no
// key that is not one of a run: callers choose the keys.
type blobs struct {
	store *store.Store
}

var _ switchyardv1connect.BlobServiceHandler = blobs{}

// PutBlob stores a value.
func (b blobs) PutBlob(ctx context.Context, req *connect.Request[v1.PutBlobRequest]) (*connect.Response[v1.PutBlobResponse], error) {
	key, data := req.Msg.GetKey(), req.Msg.GetData()
	if err := store.CheckKey(key); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if len(data) > store.MaxValueBytes {
		return nil, invalid("the value of %s has %d bytes; at most %d are taken", key, len(data), store.MaxValueBytes)
	}
	var exists bool
	var err error
	if req.Msg.GetIfAbsent() {
		exists, err = b.store.PutIfAbsent(ctx, key, data)
	} else {
		err = b.store.Put(ctx, key, data)
	}
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.PutBlobResponse{Exists: exists}), nil
}

// GetBlob returns a value.
func (b blobs) GetBlob(ctx context.Context, req *connect.Request[v1.GetBlobRequest]) (*connect.Response[v1.GetBlobResponse], error) {
	key := req.Msg.GetKey()
	if err := store.CheckKey(key); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	data, err := b.store.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(data) > store.MaxValueBytes {
		return nil, connect.NewError(connect.CodeOutOfRange,
			fmt.Errorf("the value of %s has %d bytes; at most %d are sent", key, len(data), store.MaxValueBytes))
	}
	return connect.NewResponse(&v1.GetBlobResponse{Data: data}), nil
}

// ListBlobs lists keys. The token of a page is the last key of the one before.
func (b blobs) ListBlobs(ctx context.Context, req *connect.Request[v1.ListBlobsRequest]) (*connect.Response[v1.ListBlobsResponse], error) {
	prefix, after := req.Msg.GetPrefix(), req.Msg.GetPageToken()
	if err := store.CheckPrefix(prefix); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	size := int(req.Msg.GetPageSize())
	if size == 0 {
		size = defaultBlobPage
	}
	page := &v1.ListBlobsResponse{}
	for key, err := range b.store.Keys(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		if key <= after {
			continue
		}
		if len(page.Keys) == size {
			page.NextPageToken = page.Keys[size-1]
			break
		}
		page.Keys = append(page.Keys, key)
	}
	return connect.NewResponse(page), nil
}
