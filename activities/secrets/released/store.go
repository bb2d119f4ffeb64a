package released

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/gatewayclient"
	"switchyard/activities/secrets"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// callTimeout bounds one call to a gateway.
const callTimeout = 15 * time.Second

// Store is a secrets.Store that asks a gateway. It is safe for concurrent use if Release is.
type Store struct {
	// Release asks for a secret. Its errors carry Connect codes.
	Release func(ctx context.Context, req *v1.ReleaseSecretRequest) (*v1.ReleaseSecretResponse, error)
}

var _ secrets.Store = Store{}

// From returns the store of the gateway behind a connection.
func From(conn *gatewayclient.Conn) Store {
	calls := switchyardv1connect.NewSecretServiceClient(conn.HTTP, conn.URL, gatewayclient.Calls())
	return Store{func(ctx context.Context, req *v1.ReleaseSecretRequest) (*v1.ReleaseSecretResponse, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		res, err := calls.ReleaseSecret(ctx, connect.NewRequest(req))
		if err != nil {
			return nil, err
		}
		return res.Msg, nil
	}}
}

// Value returns the value of a secret. The error wraps secrets.ErrUnavailable unless the gateway
// has refused the request for good.
func (s Store) Value(ctx context.Context, req secrets.ReleaseRequest) (string, error) {
	res, err := s.Release(ctx, &v1.ReleaseSecretRequest{
		Run: req.Run, Chain: req.Chain, Task: req.Task, Attempt: req.Attempt, Claim: req.Claim, Node: req.Node, Secret: req.Name,
	})
	if err == nil {
		return string(res.GetValue()), nil
	}
	said := err
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		said = errors.New(coded.Message())
	}
	switch connect.CodeOf(err) {
	case connect.CodeNotFound, connect.CodePermissionDenied, connect.CodeInvalidArgument, connect.CodeFailedPrecondition, connect.CodeUnimplemented:
		return "", said
	}
	return "", fmt.Errorf("%w: %w", secrets.ErrUnavailable, said)
}
