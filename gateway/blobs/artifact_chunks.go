package blobs

import (
	"context"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/artifacts"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/nodeaccess"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// putArtifactChunk stores a chunk of artifacts, which has the digest in its key. Nodes and users have files to store.
func (s Service) putArtifactChunk(ctx context.Context, key string, data []byte) (*connect.Response[v1.PutBlobResponse], error) {
	if err := artifacts.CheckChunk(key, data); err != nil {
		return nil, rpcerror.Invalid("the value of %s cannot be stored: %w", key, err)
	}
	if err := s.Store.Put(ctx, key, data); err != nil {
		return nil, s.classifyError(ctx, key, err)
	}
	return connect.NewResponse(&v1.PutBlobResponse{}), nil
}

// getArtifactChunk returns a chunk of artifacts to a node. Only a node that may read a manifest knows the keys of its chunks.
func (s Service) getArtifactChunk(ctx context.Context, key string) (*connect.Response[v1.GetBlobResponse], error) {
	if _, err := nodeaccess.Node(ctx); err != nil {
		return nil, err
	}
	data, err := s.Store.Get(ctx, key)
	if err != nil {
		return nil, s.classifyError(ctx, key, err)
	}
	return connect.NewResponse(&v1.GetBlobResponse{Data: data}), nil
}

// putSource stores the files of a run that is to be submitted, or a draft of them. Who has sent a digest alone gets no contents by it.
func (s Service) putSource(ctx context.Context, key string, data []byte) (_ *connect.Response[v1.PutBlobResponse], err error) {
	isUpload, isDraft := storekey.ParseSource(key)
	switch {
	case isDraft:
		err = checkNodeValue(storekey.DraftValue, data)
	case isUpload:
		var m *v1.ArtifactManifest
		if m, err = (&artifacts.Library{Store: s.Store}).CheckUpload(ctx, data); err == nil {
			data, err = proto.Marshal(m)
		} else if !errors.Is(err, artifacts.ErrInvalid) {
			return nil, s.classifyError(ctx, key, err)
		}
	default:
		err = errors.New("a source has the key sources/<uuid>/files")
	}
	if err != nil {
		return nil, rpcerror.Invalid("the value of %s cannot be stored: %w", key, err)
	}
	if err := s.Store.Put(ctx, key, data); err != nil {
		return nil, s.classifyError(ctx, key, err)
	}
	return connect.NewResponse(&v1.PutBlobResponse{}), nil
}

// putCommit stores the files of a commit that a node has fetched for a run, unless the run has its files.
func (s Service) putCommit(ctx context.Context, run string, req *v1.PutBlobRequest) (*connect.Response[v1.PutBlobResponse], error) {
	if err := storekey.CheckRun(run); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if err := s.Access.CheckRead(ctx, run); err != nil {
		return nil, err
	}
	if !req.GetIfAbsent() {
		return nil, alreadyStored("%s does not change", req.GetKey())
	}
	if err := checkNodeValue(storekey.ArtifactValue, req.GetData()); err != nil || len(req.GetData()) > store.MaxValueBytes {
		return nil, rpcerror.Invalid("the value of %s cannot be decoded, or has more than %d bytes: %v", req.GetKey(), store.MaxValueBytes, err)
	}
	exists, err := s.Store.PutIfAbsent(ctx, req.GetKey(), req.GetData())
	if err != nil {
		return nil, s.classifyError(ctx, req.GetKey(), err)
	}
	return connect.NewResponse(&v1.PutBlobResponse{Exists: exists}), nil
}

// FindChunks reports to nodes and users which chunks of artifacts are stored.
func (s Service) FindChunks(ctx context.Context, req *connect.Request[v1.FindChunksRequest]) (*connect.Response[v1.FindChunksResponse], error) {
	stored, err := s.Store.FindChunks(ctx, req.Msg.GetDigests())
	if errors.Is(err, store.ErrSweeping) {
		return nil, connect.NewError(connect.CodeAborted, err)
	}
	if err != nil {
		return nil, s.classifyError(ctx, "", err)
	}
	res := &v1.FindChunksResponse{}
	for i, is := range stored {
		if is {
			res.Stored = append(res.Stored, int32(i))
		}
	}
	return connect.NewResponse(res), nil
}
