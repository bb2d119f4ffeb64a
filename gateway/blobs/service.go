package blobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/logs"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/nodeaccess"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// Service implements BlobService on the gateway's store. Callers choose the keys. They may read the values of runs, the
// environments, and the identity and the data levels of the store, and store what nodes produce. It is safe for concurrent use.
type Service struct {
	Store  *store.Store
	Access *nodeaccess.Access
}

var _ switchyardv1connect.BlobServiceHandler = Service{}

const (
	// MaxMessageBytes leaves room for a key beside the largest value.
	MaxMessageBytes = store.MaxValueBytes + 64<<10
	// defaultPage is the number of keys on a page if the request names no size.
	defaultPage = 1000
)

// PutBlob stores a value that a node has produced.
func (s Service) PutBlob(ctx context.Context, req *connect.Request[v1.PutBlobRequest]) (*connect.Response[v1.PutBlobResponse], error) {
	key, data := req.Msg.GetKey(), req.Msg.GetData()
	if key == probeKey {
		return s.putProbe(ctx, data)
	}
	if isOfEnvironment(key) {
		return s.putEnvironmentPart(ctx, req.Msg)
	}
	if strings.HasPrefix(key, storekey.ChunksPrefix) {
		return s.putArtifactChunk(ctx, key, data)
	}
	if strings.HasPrefix(key, storekey.SourcesPrefix) {
		return s.putSource(ctx, key, data)
	}
	if run, _, err := storekey.SplitRun(key); err == nil && key == storekey.Source(run) {
		return s.putCommit(ctx, run, req.Msg)
	}
	of, err := storekey.ParseNode(key)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if err := s.Access.CheckWrite(ctx, of); err != nil {
		return nil, err
	}
	if len(data) > store.MaxValueBytes {
		return nil, rpcerror.Invalid("the value of %s has %d bytes; the maximum is %d", key, len(data), store.MaxValueBytes)
	}
	if err := checkNodeValue(of.Kind, data); err != nil {
		return nil, rpcerror.Invalid("the value of %s cannot be decoded: %w", key, err)
	}
	if req.Msg.GetIfAbsent() {
		exists, err := s.Store.PutIfAbsent(ctx, key, data)
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(&v1.PutBlobResponse{Exists: exists}), nil
	}
	switch of.Kind {
	case storekey.LogChunkValue:
		err = s.putChunk(ctx, key, data)
	case storekey.ResultValue:
		err = s.putResult(ctx, key, data)
	default:
		err = s.Store.Put(ctx, key, data)
	}
	if err != nil {
		return nil, s.classifyError(ctx, key, err)
	}
	return connect.NewResponse(&v1.PutBlobResponse{}), nil
}

// probeKey is the key under which nodes probe whether the store answers. It belongs to no run.
var probeKey = storekey.Probe(store.ProbeRun)

// maxProbeBytes bounds the value of a probe. It exceeds what store.Probe writes.
const maxProbeBytes = 64

func (s Service) putProbe(ctx context.Context, data []byte) (*connect.Response[v1.PutBlobResponse], error) {
	if _, err := nodeaccess.Node(ctx); err != nil {
		return nil, err
	}
	if len(data) > maxProbeBytes {
		return nil, rpcerror.Invalid("the value of %s has %d bytes; the maximum is %d", probeKey, len(data), maxProbeBytes)
	}
	if err := s.Store.Put(ctx, probeKey, data); err != nil {
		return nil, s.classifyError(ctx, probeKey, err)
	}
	return connect.NewResponse(&v1.PutBlobResponse{}), nil
}

// checkNodeValue rejects a value that its readers could not decode.
func checkNodeValue(kind storekey.NodeValue, data []byte) error {
	switch kind {
	case storekey.ResultValue, storekey.BatchValue:
		return proto.Unmarshal(data, &historyv1.ExecuteResponse{})
	case storekey.LogChunkValue:
		return logs.CheckChunk(data)
	case storekey.ArtifactValue:
		return proto.Unmarshal(data, &v1.ArtifactManifest{})
	case storekey.DraftValue:
		return proto.Unmarshal(data, &v1.ArtifactDraft{})
	}
	return nil
}

// putChunk stores a chunk of a log once. A node that missed the reply stores the same chunk again, which succeeds.
func (s Service) putChunk(ctx context.Context, key string, data []byte) error {
	existed, err := s.Store.PutIfAbsent(ctx, key, data)
	if err != nil || !existed {
		return err
	}
	stored, err := s.Store.Get(ctx, key)
	if err == nil && !bytes.Equal(stored, data) {
		err = alreadyStored("%s is stored with other output; a chunk of a log never changes", key)
	}
	return err
}

// putResult stores a result record. It may replace any record except that of a completed attempt.
func (s Service) putResult(ctx context.Context, key string, data []byte) error {
	var stored historyv1.ExecuteResponse
	switch err := s.Store.GetMessage(ctx, key, &stored); {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return err
	case stored.GetState() == v1.TaskCompleted:
		return alreadyStored("%s is a completed result; the first record of a completed attempt counts", key)
	}
	return s.Store.Put(ctx, key, data)
}

func alreadyStored(format string, args ...any) error {
	return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf(format, args...))
}

// classifyError attaches a code to the error of a call: Unavailable while the store does not answer, so that the node tries
// again.
func (s Service) classifyError(ctx context.Context, key string, err error) error {
	if full, ok := errors.AsType[*store.ArtifactQuotaError](err); ok {
		return connect.NewError(connect.CodeOutOfRange, full)
	}
	run := store.ProbeRun
	if of, _, err := storekey.SplitRun(key); err == nil {
		run = of
	}
	if errors.Is(err, store.ErrNotFound) || ctx.Err() != nil || s.Store.Probe(ctx, run) == nil {
		return err
	}
	return connect.NewError(connect.CodeUnavailable, err)
}

// GetBlob returns a value.
func (s Service) GetBlob(ctx context.Context, req *connect.Request[v1.GetBlobRequest]) (*connect.Response[v1.GetBlobResponse], error) {
	key := req.Msg.GetKey()
	if key == store.IdentityKey {
		if _, err := nodeaccess.Node(ctx); err != nil {
			return nil, err
		}
		id, err := s.Store.Identify(ctx)
		if err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, err)
		}
		return connect.NewResponse(&v1.GetBlobResponse{Data: []byte(id)}), nil
	}
	if store.IsLevelKey(key) {
		return s.getLevel(ctx, key)
	}
	if isOfEnvironment(key) {
		return s.getEnvironmentValue(ctx, key)
	}
	if _, isChunk := storekey.ParseChunk(key); isChunk {
		return s.getArtifactChunk(ctx, key)
	}
	if err := storekey.Check(key); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if err := s.checkRead(ctx, key); err != nil {
		return nil, err
	}
	data, err := s.Store.Get(ctx, key)
	if err != nil {
		return nil, s.classifyError(ctx, key, err)
	}
	if len(data) > store.MaxValueBytes {
		return nil, tooLarge(key, len(data))
	}
	return connect.NewResponse(&v1.GetBlobResponse{Data: data}), nil
}

// getLevel returns which version has raised the store to a data level.
func (s Service) getLevel(ctx context.Context, key string) (*connect.Response[v1.GetBlobResponse], error) {
	if _, err := nodeaccess.Node(ctx); err != nil {
		return nil, err
	}
	by, err := s.Store.Get(ctx, key)
	if err != nil {
		return nil, s.classifyError(ctx, key, err)
	}
	return connect.NewResponse(&v1.GetBlobResponse{Data: by}), nil
}

func tooLarge(key string, bytes int) error {
	return connect.NewError(connect.CodeOutOfRange, fmt.Errorf("the value of %s has %d bytes; the maximum that is sent is %d", key, bytes, store.MaxValueBytes))
}

// checkRead returns an error unless the caller may read the values under a key or key prefix. Grants are never served; only
// gateways and control processes read them.
func (s Service) checkRead(ctx context.Context, key string) error {
	if storekey.IsGrant(key) {
		return connect.NewError(connect.CodePermissionDenied, fmt.Errorf("%s is not served; only gateways and control processes read grants", key))
	}
	run, _, err := storekey.SplitRun(key)
	if err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	if key == probeKey {
		_, err := nodeaccess.Node(ctx)
		return err
	}
	return s.Access.CheckRead(ctx, run)
}

// ListBlobs lists the keys that start with a prefix.
func (s Service) ListBlobs(ctx context.Context, req *connect.Request[v1.ListBlobsRequest]) (*connect.Response[v1.ListBlobsResponse], error) {
	prefix := req.Msg.GetPrefix()
	if err := storekey.CheckPrefix(prefix); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if err := s.checkRead(ctx, prefix); err != nil {
		return nil, err
	}
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	after, err := pages.DecodeKey(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	size := int(req.Msg.GetPageSize())
	if size == 0 {
		size = defaultPage
	}
	page := &v1.ListBlobsResponse{}
	for key, err := range s.Store.Keys(ctx, prefix) {
		if err != nil {
			return nil, s.classifyError(ctx, prefix, err)
		}
		if key <= after || storekey.IsGrant(key) {
			continue
		}
		if len(page.Keys) == size {
			page.NextPageToken = pages.EncodeKey(page.Keys[size-1])
			break
		}
		page.Keys = append(page.Keys, key)
	}
	return connect.NewResponse(page), nil
}
