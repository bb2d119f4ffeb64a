package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"

	"switchyard/cli/exit"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// DefaultURL is the URL of the gateway if no flag names one.
const DefaultURL = "http://127.0.0.1:7280"

// callTimeout bounds one unary call.
const callTimeout = time.Minute

// Client is a client of a gateway. Its methods are safe for concurrent use.
type Client struct {
	Runs      switchyardv1connect.RunServiceClient
	Nodes     switchyardv1connect.NodeServiceClient
	Workflows switchyardv1connect.WorkflowServiceClient
	Tasks     switchyardv1connect.TaskServiceClient
	Schedules switchyardv1connect.ScheduleServiceClient
	Auth      switchyardv1connect.AuthServiceClient
	Secrets   switchyardv1connect.SecretServiceClient
	Audit     switchyardv1connect.AuditServiceClient
	Keys      switchyardv1connect.KeyServiceClient
	Export    switchyardv1connect.ExportServiceClient
	Vps       switchyardv1connect.VpsServiceClient
	// Environments serves the named environments.
	Environments switchyardv1connect.EnvironmentServiceClient
	URL          string
	http         *http.Transport
	token        string
	// showsCertificate is true if the client has a certificate of its own.
	showsCertificate bool
}

// Options sets how a client reaches its gateway.
type Options struct {
	// Token authenticates the client. It is "" for a gateway that needs none.
	Token string
	// TLS is the configuration for a gateway with an https URL. nil means the authorities of the system.
	TLS *tls.Config
}

// ParseURL returns the URL of the gateway at an address: a URL, host:port, or "" for the default.
func ParseURL(address string) (*url.URL, error) {
	if address == "" {
		address = DefaultURL
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, exit.Usagef("--gateway %q is not a gateway URL such as %s", address, DefaultURL)
	}
	if u.User != nil {
		return nil, exit.Usagef("--gateway %s contains a password, and URLs end up in logs; use `switchyard login` or SWITCHYARD_TOKEN instead", u.Redacted())
	}
	return u, nil
}

// IsLoopback reports whether a URL points to this machine.
func IsLoopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// New returns a client of the gateway at a URL. It does not connect yet.
func New(u *url.URL, o Options) *Client {
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		Protocols:       new(http.Protocols),
		TLSClientConfig: o.TLS,
		// Pings detect a gateway that disappeared without closing the connection.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
	if u.Scheme == "http" {
		transport.Protocols.SetUnencryptedHTTP2(true)
	} else {
		transport.Protocols.SetHTTP1(true)
		transport.Protocols.SetHTTP2(true)
	}
	claimed := connect.WithInterceptors(claimActor(thisUser()))
	base, client := u.String(), &http.Client{Transport: bearerTransport{transport, u, o.Token}}
	return &Client{
		Runs:             switchyardv1connect.NewRunServiceClient(client, base, claimed),
		Nodes:            switchyardv1connect.NewNodeServiceClient(client, base, claimed),
		Workflows:        switchyardv1connect.NewWorkflowServiceClient(client, base, claimed),
		Tasks:            switchyardv1connect.NewTaskServiceClient(client, base, claimed),
		Schedules:        switchyardv1connect.NewScheduleServiceClient(client, base, claimed),
		Auth:             switchyardv1connect.NewAuthServiceClient(client, base, claimed),
		Secrets:          switchyardv1connect.NewSecretServiceClient(client, base, claimed),
		Audit:            switchyardv1connect.NewAuditServiceClient(client, base, claimed),
		Keys:             switchyardv1connect.NewKeyServiceClient(client, base, claimed),
		Export:           switchyardv1connect.NewExportServiceClient(client, base, claimed),
		Vps:              switchyardv1connect.NewVpsServiceClient(client, base, claimed),
		Environments:     switchyardv1connect.NewEnvironmentServiceClient(client, base, claimed),
		URL:              base,
		http:             transport,
		token:            o.Token,
		showsCertificate: o.TLS != nil && o.TLS.GetClientCertificate != nil,
	}
}

// Close closes idle connections.
func (a *Client) Close() { a.http.CloseIdleConnections() }

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
