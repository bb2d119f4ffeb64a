package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"switchyard/activities/metrics"
)

// DialOptions sets how to connect to Temporal.
type DialOptions struct {
	// Address is the host and port of the frontend. "" means the address in Temporal's own environment variables and
	// profile file.
	Address string
	// Namespace applies if Address is set. "" means "default".
	Namespace string
	// Identity names this process in Temporal's histories.
	Identity string
	// Metrics receives the metrics of the SDK. It may be nil.
	Metrics *metrics.Metrics
	Logger  *slog.Logger
}

// Connection is a Temporal client with the capabilities of its server.
type Connection struct {
	client.Client
	// Address is the host and port of the server.
	Address string
	// Namespace is the namespace of the client.
	Namespace string
	// Fleet distinguishes fleets. It is the ID of the namespace, whatever address reached the server.
	Fleet string
	// PushesCancel is true if the server notifies a worker immediately that an activity is cancelled, instead of in the
	// reply to its next heartbeat.
	PushesCancel bool
}

// silence is how long data may stay unacknowledged before the connection counts as dead and is replaced. It is well
// below the lease of an attempt.
const silence = 5 * time.Second

// reconnectPause is the longest time between two tries to reach a server that was away, plus at most a fifth. A node must be back
// well before its attempts count as lost with it.
const reconnectPause = 2 * time.Second

// dialTimeout bounds the first calls to the server.
const dialTimeout = 10 * time.Second

// Dial connects to Temporal. The namespace must exist.
func Dial(ctx context.Context, o DialOptions) (*Connection, error) {
	opts := client.Options{HostPort: o.Address, Namespace: o.Namespace}
	if o.Address == "" {
		var err error
		if opts, err = envconfig.LoadDefaultClientOptions(); err != nil {
			return nil, fmt.Errorf("read the settings of the Temporal client: %w", err)
		}
	}
	opts.HostPort = cmp.Or(opts.HostPort, client.DefaultHostPort)
	opts.Namespace = cmp.Or(opts.Namespace, client.DefaultNamespace)
	opts.Logger = log.NewStructuredLogger(quiet(o.Logger))
	opts.Identity = o.Identity
	opts.DataConverter = NewDataConverter()
	opts.FailureConverter = newFailureConverter(opts.DataConverter)
	opts.Interceptors = append(opts.Interceptors, &validQueries{})
	opts.MetricsHandler = o.Metrics.SDK()
	opts.ConnectionOptions.KeepAliveTimeout = silence
	retries := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: dialTimeout}
	retries.Backoff.BaseDelay, retries.Backoff.MaxDelay = reconnectPause/10, reconnectPause
	opts.ConnectionOptions.DialOptions = append(opts.ConnectionOptions.DialOptions, grpc.WithConnectParams(retries))
	if isLoopback(opts.HostPort) {
		// The SDK compresses messages, which is worth the processor time only across a network.
		opts.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal at %s: %w", opts.HostPort, err)
	}
	d, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: opts.Namespace})
	if _, missing := errors.AsType[*serviceerror.NamespaceNotFound](err); missing {
		err = fmt.Errorf("there is no namespace %q; create it with `temporal operator namespace create -n %s`", opts.Namespace, opts.Namespace)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("connect to Temporal at %s: %w", opts.HostPort, err)
	}
	return &Connection{
		Client:       c,
		Address:      opts.HostPort,
		Namespace:    opts.Namespace,
		Fleet:        d.GetNamespaceInfo().GetId(),
		PushesCancel: d.GetNamespaceInfo().GetCapabilities().GetWorkerCommands(),
	}, nil
}

// IsAway reports whether an error of Dial means that the server does not answer.
func IsAway(err error) bool {
	_, unavailable := errors.AsType[*serviceerror.Unavailable](err)
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return unavailable || late || errors.Is(err, context.DeadlineExceeded)
}

// CheckFleet returns an error unless the server still has the namespace that it had when the connection was made. A server
// that has lost its database has another one of the same name, and what it does not know may still run.
func (c *Connection) CheckFleet(ctx context.Context) error {
	d, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: c.Namespace})
	if err != nil {
		return err
	}
	if id := d.GetNamespaceInfo().GetId(); id != c.Fleet {
		return fmt.Errorf("namespace %s has the ID %s, but had %s at the start of this process; restart it", c.Namespace, id, c.Fleet)
	}
	return nil
}

// isLoopback reports whether an address is certainly on this machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
