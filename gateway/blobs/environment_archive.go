package blobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	"switchyard/activities/environments"
	"switchyard/activities/executor"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/nodeaccess"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// isOfEnvironment reports whether a key belongs to the named environments.
func isOfEnvironment(key string) bool { return strings.HasPrefix(key, storekey.EnvironmentsPrefix) }

// putEnvironmentPart stores a part of an archive that is reserved for the caller's node. A node that missed the reply stores the
// same part again, which succeeds.
func (s Service) putEnvironmentPart(ctx context.Context, req *v1.PutBlobRequest) (*connect.Response[v1.PutBlobResponse], error) {
	key, data := req.GetKey(), req.GetData()
	node, err := nodeaccess.Node(ctx)
	if err != nil {
		return nil, err
	}
	stored, _, ok := storekey.ParseEnvironmentPart(key)
	if !ok {
		return nil, rpcerror.Invalid("nodes cannot store %.200q; under environments they only store parts of archives", key)
	}
	if len(data) > environments.PartBytes {
		return nil, rpcerror.Invalid("the value of %s has %d bytes; a part of an archive has at most %d", key, len(data), environments.PartBytes)
	}
	archive, _, _ := strings.Cut(stored, "/")
	owner, err := environments.New(s.Store).Owner(ctx, archive)
	if err != nil && !errors.Is(err, executor.ErrNoEnvironment) {
		return nil, s.classifyError(ctx, key, err)
	}
	if err != nil || node != "" && node != owner.GetNode() {
		return nil, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("archive %s is not reserved for node %s, or its creation has ended", archive, node))
	}
	exists, err := s.Store.PutIfAbsent(ctx, key, data)
	if err == nil && exists && !req.GetIfAbsent() {
		var there []byte
		if there, err = s.Store.Get(ctx, key); err == nil && !bytes.Equal(there, data) {
			return nil, alreadyStored("%s is stored with other contents; a part of an archive never changes", key)
		}
	}
	if err != nil {
		return nil, s.classifyError(ctx, key, err)
	}
	return connect.NewResponse(&v1.PutBlobResponse{Exists: exists && req.GetIfAbsent()}), nil
}

// getEnvironmentValue returns a ready environment or a part of an archive. Any node may run any environment, and the names of
// archives cannot be guessed.
func (s Service) getEnvironmentValue(ctx context.Context, key string) (*connect.Response[v1.GetBlobResponse], error) {
	if _, err := nodeaccess.Node(ctx); err != nil {
		return nil, err
	}
	_, isName := storekey.ParseEnvironmentName(key)
	if _, _, isPart := storekey.ParseEnvironmentPart(key); !isName && !isPart {
		return nil, rpcerror.Invalid("%.200q is not the key of an environment or of a part of its archive", key)
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
