package rundetails

import (
	"context"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/gateway/paging"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// defaultFilePage is the number of files on a page if the request names no size.
const defaultFilePage = 1000

// ListArtifactFiles lists the files of an artifact of a task or an instance.
func (f files) ListArtifactFiles(ctx context.Context, req *connect.Request[v1.ListArtifactFilesRequest]) (*connect.Response[v1.ListArtifactFilesResponse], error) {
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	after, err := pages.DecodeKey(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	leave, err := f.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	a, err := f.find(ctx, req.Msg.GetId(), req.Msg.GetTask(), req.Msg.GetName())
	if err != nil {
		return nil, err
	}
	all, err := f.library.Files(ctx, a)
	if err != nil {
		return nil, removedError(a, err)
	}
	if after != "" {
		last := slices.IndexFunc(all, func(file *v1.ArtifactFile) bool { return file.GetPath() == after })
		if last < 0 {
			return nil, paging.InvalidToken()
		}
		all = all[last+1:]
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultFilePage
	}
	res, size := &v1.ListArtifactFilesResponse{Artifact: runview.ShownArtifacts(&v1.TaskResult{Artifacts: []*v1.Artifact{a}})[0]}, 0
	for i, file := range all {
		if size += proto.Size(file); i > 0 && (i == limit || size > paging.MaxBytes) {
			res.NextPageToken = pages.EncodeKey(all[i-1].GetPath())
			break
		}
		res.Items = append(res.Items, file)
	}
	return connect.NewResponse(res), nil
}
