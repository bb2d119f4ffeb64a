package embedded

import (
	"context"
	"time"

	"go.temporal.io/server/api/matchingservice/v1"
	"go.temporal.io/server/client"
	"go.temporal.io/server/client/matching"
	"go.temporal.io/server/common"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/testing/testhooks"
	"google.golang.org/grpc"
)

// endWith returns an interceptor that ends running calls when stopping is done. Without it, the stopping server waits a
// full second for long polls, including those of its own system workers.
func endWith(stopping context.Context) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, cancel := endingWith(ctx, stopping)
		defer cancel()
		return handler(ctx, req)
	}
}

// endingWith returns a context that also ends when stopping is done.
func endingWith(ctx, stopping context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(stopping, cancel)
	return ctx, func() {
		detach()
		cancel()
	}
}

// clientFactories creates the clients with which the services call each other. They differ from the server's own in one
// respect: pushing a command to a worker ends when stopping is done. Without that, the server waits ten seconds for the
// reply of a worker that has gone.
type clientFactories struct {
	client.FactoryProvider
	stopping context.Context
}

func (p clientFactories) NewFactory(rpc common.RPCFactory, monitor membership.Monitor, meter metrics.Handler,
	dc *dynamicconfig.Collection, hooks testhooks.TestHooks, shards int32, logger, throttled log.Logger) client.Factory {
	return clientFactory{
		Factory:  p.FactoryProvider.NewFactory(rpc, monitor, meter, dc, hooks, shards, logger, throttled),
		stopping: p.stopping,
	}
}

type clientFactory struct {
	client.Factory
	stopping context.Context
}

func (f clientFactory) NewMatchingClientWithTimeout(names client.NamespaceIDToNameFunc, timeout, longPoll time.Duration) (matchingservice.MatchingServiceClient, error) {
	inner, err := f.Factory.NewMatchingClientWithTimeout(names, timeout, longPoll)
	if err != nil {
		return nil, err
	}
	whole, ok := inner.(wholeClient)
	if !ok {
		return inner, nil // the server stops more slowly, but everything else works
	}
	return matchingClient{wholeClient: whole, stopping: f.stopping}, nil
}

// wholeClient lists everything that the server expects of a client of its matching service, including through type
// assertions.
type wholeClient interface {
	matchingservice.MatchingServiceClient
	matching.RoutingClient
	Stop()
}

type matchingClient struct {
	wholeClient
	stopping context.Context
}

func (c matchingClient) DispatchNexusTask(ctx context.Context, req *matchingservice.DispatchNexusTaskRequest, opts ...grpc.CallOption) (*matchingservice.DispatchNexusTaskResponse, error) {
	ctx, cancel := endingWith(ctx, c.stopping)
	defer cancel()
	return c.wholeClient.DispatchNexusTask(ctx, req, opts...)
}
