package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/gatewayclient"
	"switchyard/cli/exit"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// DefaultURL is the URL of the gateway if no flag names one.
const DefaultURL = "http://127.0.0.1:7280"

// callTimeout bounds one unary call.
const callTimeout = time.Minute

// Client is a client of the gateways of a fleet, which uses the next one while one does not answer. Its methods are safe for concurrent use.
type Client struct {
	Runs          switchyardv1connect.RunServiceClient
	Nodes         switchyardv1connect.NodeServiceClient
	Workflows     switchyardv1connect.WorkflowServiceClient
	Tasks         switchyardv1connect.TaskServiceClient
	Schedules     switchyardv1connect.ScheduleServiceClient
	Auth          switchyardv1connect.AuthServiceClient
	Secrets       switchyardv1connect.SecretServiceClient
	Notifications switchyardv1connect.NotificationServiceClient
	Owners        switchyardv1connect.OwnerServiceClient
	Audit         switchyardv1connect.AuditServiceClient
	Keys          switchyardv1connect.KeyServiceClient
	Export        switchyardv1connect.ExportServiceClient
	Vps           switchyardv1connect.VpsServiceClient
	// Environments serves the named environments.
	Environments switchyardv1connect.EnvironmentServiceClient
	gateways     *gatewayclient.Conn
	// showsCertificate is true if the client has a certificate of its own.
	showsCertificate bool
}

// Options sets how a client reaches its gateways.
type Options struct {
	// Token authenticates the client. It is "" for gateways that need none.
	Token string
	// TLS is the configuration for gateways with https URLs. nil means the authorities of the system.
	TLS *tls.Config
}

// ParseGateways returns the gateways that a text names: URLs or host:port, separated by commas, or "" for the default. place is
// where the text comes from, for errors.
func ParseGateways(place, text string) (gatewayclient.List, error) {
	list, err := gatewayclient.Parse(cmp.Or(text, DefaultURL))
	if err != nil {
		return nil, exit.Usagef("%s: %w", place, err)
	}
	return list, nil
}

// IsLoopback reports whether a URL points to this machine.
func IsLoopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// New returns a client of the gateways of a list. It does not connect yet.
func New(list gatewayclient.List, o Options) *Client {
	gateways := gatewayclient.New(list, gatewayclient.Options{Token: func() string { return o.Token }, TLS: o.TLS})
	claimed := connect.WithInterceptors(claimActor(thisUser()))
	options := connect.WithClientOptions(claimed, gatewayclient.Calls())
	base, client := gateways.URL, gateways.HTTP
	return &Client{
		Runs:             switchyardv1connect.NewRunServiceClient(client, base, options),
		Nodes:            switchyardv1connect.NewNodeServiceClient(client, base, options),
		Workflows:        switchyardv1connect.NewWorkflowServiceClient(client, base, options),
		Tasks:            switchyardv1connect.NewTaskServiceClient(client, base, options),
		Schedules:        switchyardv1connect.NewScheduleServiceClient(client, base, options),
		Auth:             switchyardv1connect.NewAuthServiceClient(client, base, options),
		Secrets:          switchyardv1connect.NewSecretServiceClient(client, base, options),
		Notifications:    switchyardv1connect.NewNotificationServiceClient(client, base, options),
		Owners:           switchyardv1connect.NewOwnerServiceClient(client, base, options),
		Audit:            switchyardv1connect.NewAuditServiceClient(client, base, options),
		Keys:             switchyardv1connect.NewKeyServiceClient(client, base, options),
		Export:           switchyardv1connect.NewExportServiceClient(client, base, options),
		Vps:              switchyardv1connect.NewVpsServiceClient(client, base, options),
		Environments:     switchyardv1connect.NewEnvironmentServiceClient(client, base, options),
		gateways:         gateways,
		showsCertificate: o.TLS != nil && o.TLS.GetClientCertificate != nil,
	}
}

// Close closes idle connections.
func (a *Client) Close() { a.gateways.Close() }

// URL returns the URL of the gateway in use.
func (a *Client) URL() string {
	gateway, _ := a.gateways.InUse()
	return gateway
}

// Gateways returns the connection to the gateways.
func (a *Client) Gateways() *gatewayclient.Conn { return a.gateways }

// Call makes one call with a time limit. Its error carries an exit code.
func Call[Req, Res any](ctx context.Context, a *Client, method func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), req *Req) (*Res, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	res, err := method(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, a.Failure(err)
	}
	return res.Msg, nil
}
