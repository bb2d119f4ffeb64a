package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/gatewayclient"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// remote stores values with the gateways of a fleet. It retries a call that does not get through until the call's context
// ends, or for patience if that has no deadline.
type remote struct {
	calls switchyardv1connect.BlobServiceClient
	conn  *gatewayclient.Conn
}

var _ backend = (*remote)(nil)

const (
	// patience is how long calls without a deadline are retried. A restarted gateway is back within that time.
	patience = 15 * time.Second
	// The pause between two tries starts at firstPause and doubles up to longestPause.
	firstPause, longestPause = 50 * time.Millisecond, time.Second
	// maxMessageBytes is the size of the largest value and a key.
	maxMessageBytes = MaxValueBytes + 64<<10
	listPage        = 1000
)

// errTooLarge is the error of a value above MaxValueBytes.
var errTooLarge = fmt.Errorf("gateways and spools take values of at most %d MiB", MaxValueBytes>>20)

func openRemote(location string, o Options) (*remote, error) {
	conn := o.Gateways
	if conn == nil {
		list, err := gatewayclient.Parse(location)
		if err != nil {
			return nil, fmt.Errorf("open store %q: %w", location, err)
		}
		conn = gatewayclient.New(list, gatewayclient.Options{Identify: GatewayIdentity})
	}
	return &remote{
		calls: switchyardv1connect.NewBlobServiceClient(conn.HTTP, conn.URL, gatewayclient.Calls(),
			connect.WithReadMaxBytes(maxMessageBytes),
			// Compression of logs would cost the gateway more than it saves on a local network.
			connect.WithAcceptCompression("gzip", nil, nil)),
		conn: conn,
	}, nil
}

func (r *remote) put(ctx context.Context, key string, value []byte) error {
	_, err := r.store(ctx, &v1.PutBlobRequest{Key: key, Data: value})
	return err
}

func (r *remote) putIfAbsent(ctx context.Context, key string, value []byte) (bool, error) {
	return r.store(ctx, &v1.PutBlobRequest{Key: key, Data: value, IfAbsent: true})
}

func (r *remote) store(ctx context.Context, req *v1.PutBlobRequest) (existed bool, err error) {
	if len(req.GetData()) > MaxValueBytes {
		return false, errTooLarge
	}
	res, err := insist(ctx, r, r.calls.PutBlob, req)
	return res.GetExists(), putError(req.GetKey(), err)
}

// storeOnce stores a value with a single try.
func (r *remote) storeOnce(ctx context.Context, key string, value []byte, ifAbsent bool) (existed bool, err error) {
	if len(value) > MaxValueBytes {
		return false, errTooLarge
	}
	res, err := r.calls.PutBlob(ctx, connect.NewRequest(&v1.PutBlobRequest{Key: key, Data: value, IfAbsent: ifAbsent}))
	if err != nil {
		return false, putError(key, r.failed(err))
	}
	return res.Msg.GetExists(), nil
}

// putError returns the error of a PutBlob as ErrLogQuota or ArtifactQuotaError if its code says so.
func putError(key string, err error) error {
	refused, isWire := errors.AsType[*connect.Error](err)
	if !isWire || refused.Code() != connect.CodeOutOfRange {
		return err
	}
	if _, _, isLog := storekey.ParseLogChunk(key); isLog {
		return fmt.Errorf("%w: %w", ErrLogQuota, err)
	}
	return &ArtifactQuotaError{refused.Message()}
}

func (r *remote) get(ctx context.Context, key string) ([]byte, error) {
	res, err := insist(ctx, r, r.calls.GetBlob, &v1.GetBlobRequest{Key: key})
	return res.GetData(), err
}

func (r *remote) findChunks(ctx context.Context, digests [][]byte) ([]bool, error) {
	res, err := r.calls.FindChunks(ctx, connect.NewRequest(&v1.FindChunksRequest{Digests: digests}))
	if connect.CodeOf(err) == connect.CodeAborted {
		return nil, ErrSweeping
	}
	if err != nil {
		return nil, r.failed(err)
	}
	stored := make([]bool, len(digests))
	for _, i := range res.Msg.GetStored() {
		if i < 0 || int(i) >= len(stored) {
			return nil, fmt.Errorf("gateway %s: chunk %d of %d is stored", r.inUse(), i, len(stored))
		}
		stored[i] = true
	}
	return stored, nil
}

func (r *remote) keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		req := &v1.ListBlobsRequest{Prefix: prefix, PageSize: listPage}
		for {
			page, err := insist(ctx, r, r.calls.ListBlobs, req)
			if err != nil {
				yield("", err)
				return
			}
			for _, key := range page.GetKeys() {
				if !yield(key, nil) {
					return
				}
			}
			if req.PageToken = page.GetNextPageToken(); req.PageToken == "" {
				return
			}
		}
	}
}

// errNotOffered is the error of operations that are reserved to the gateway.
var errNotOffered = errors.New("a gateway does not support that on its store")

func (r *remote) runs(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("", errNotOffered) }
}

func (r *remote) newest(context.Context, string) (time.Time, error) {
	return time.Time{}, errNotOffered
}

func (r *remote) deleteRun(context.Context, string) error { return errNotOffered }

func (r *remote) delete(context.Context, string) error { return errNotOffered }

func (r *remote) deleteOlder(context.Context, string, time.Time) (int, error) {
	return 0, errNotOffered
}

func (r *remote) location() string { return r.conn.List().String() }

func (r *remote) close() error {
	r.conn.Close()
	return nil
}

// insist repeats a call until it gets through. Every call is idempotent: a repeated put stores the same value, or finds
// its own.
func insist[Req, Res any](ctx context.Context, r *remote, call func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), req *Req) (*Res, error) {
	ctx, cancel := orPatience(ctx)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		res, err := call(ctx, connect.NewRequest(req))
		if err == nil {
			return res.Msg, nil
		}
		if !isAway(err) {
			return nil, r.failed(err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, r.failed(err)
		}
	}
}

// orPatience adds a deadline to a context that has none.
func orPatience(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, patience)
}

// failed translates the error of a call into the errors of this package.
func (r *remote) failed(err error) error {
	switch code := connect.CodeOf(err); {
	case !connect.IsWireError(err):
	case code == connect.CodeNotFound:
		return ErrNotFound
	case code == connect.CodeFailedPrecondition:
		return fmt.Errorf("gateway %s: %w: %w", r.inUse(), ErrLowSpace, err)
	}
	if _, named := errors.AsType[*gatewayclient.UnreachableError](err); named {
		return err
	}
	return fmt.Errorf("gateway %s: %w", r.inUse(), err)
}

func (r *remote) inUse() string {
	gateway, _ := r.conn.InUse()
	return gateway
}

// isAway reports whether an error means that a store did not answer or had no time to, rather than that it refused the
// call. An invalid token counts as away, because it may be replaced.
func isAway(err error) bool {
	if errors.Is(err, ErrLowSpace) || errors.Is(err, ErrLogQuota) || isArtifactQuota(err) || errors.Is(err, errTooLarge) {
		return false
	}
	if !connect.IsWireError(err) {
		return true
	}
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeCanceled, connect.CodeResourceExhausted, connect.CodeAborted,
		connect.CodeUnauthenticated:
		return true
	}
	return false
}
