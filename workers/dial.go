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

	"switchyard/activities/metrics"
)

// DialOptions say where Temporal is.
type DialOptions struct {
	// Address is the host and port of the frontend; empty: what Temporal's own
	// environment variables and profile file say.
	Address string
	// Namespace, when Address is given; empty: "default".
	Namespace string
	// Identity names this process in Temporal's histories.
	Identity string
	// Metrics takes the SDK's figures; nil: they are not kept.
	Metrics *metrics.Metrics
	Logger  *slog.Logger
}

// Connection is a client of Temporal, and what the server can do.
type Connection struct {
	client.Client
	// Namespace that the client works in.
	Namespace string
	// Fleet distinguishes fleets: it is the identity of the namespace, however the
	// server was reached.
	Fleet string
	// PushesCancel says that the server notifies a worker at once that one of its
	// activities is cancelled, and not in the answer to its next heartbeat.
	PushesCancel bool
}

// silence is how long data may lie unacknowledged before the connection counts as
// dead and another is made: well within the lease of an attempt.
const silence = 5 * time.Second

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
	if isLoopback(opts.HostPort) {
		// The SDK compresses what it sends, which is worth its processor time only
		// where there is a network.
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
		err = fmt.Errorf("there is no namespace %q; make it with `temporal operator namespace create -n %s`", opts.Namespace, opts.Namespace)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("connect to Temporal at %s: %w", opts.HostPort, err)
	}
	return &Connection{
		Client:       c,
		Namespace:    opts.Namespace,
		Fleet:        d.GetNamespaceInfo().GetId(),
		PushesCancel: d.GetNamespaceInfo().GetCapabilities().GetWorkerCommands(),
	}, nil
}

// isLoopback reports whether an address is on this machine for certain.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
