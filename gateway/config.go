package gateway

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/metrics"
	"switchyard/activities/notifications"
	"switchyard/activities/registry"
	"switchyard/activities/secrets/vault"
	"switchyard/activities/store"
	"switchyard/gateway/auth"
	"switchyard/gateway/edge"
	"switchyard/gateway/nodes"
	"switchyard/gateway/tokens"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// Config holds the dependencies and settings of a Gateway.
type Config struct {
	// Client is the Temporal client. The gateway does not close it.
	Client client.Client
	// Store holds result records, statuses and logs. The gateway does not close it.
	Store *store.Store
	// Namespace is the Temporal namespace of Client. Default: "default".
	Namespace string
	// Nodes is the node registry. Default: the one in Temporal.
	Nodes nodes.Registry
	// Observer makes the gateway read-only: it refuses calls that change anything.
	Observer bool
	// TemporalFault returns why Temporal cannot work at the moment, or nil if no cause is known. Default: no cause is ever known.
	TemporalFault func() error
	// Logger receives messages for operators. Default: messages are discarded.
	Logger *slog.Logger
	// Metrics holds the metrics of the process, served under GET /metrics. Default: they are not served.
	Metrics *metrics.Metrics
	// Authenticator identifies callers. Default: authentication is off, and every caller may do everything.
	Authenticator auth.Authenticator
	// Tokens holds the tokens that callers log in with if Authenticator asks for them.
	Tokens *tokens.Registry
	// Vault holds the secrets of tasks. Default: the gateway stores no secrets.
	Vault *vault.Vault
	// Targets holds the targets of notifications, and Sender delivers messages to them. Default: the targets in Store, which are sent
	// no message.
	Targets *notifications.Targets
	Sender  *notifications.Sender
	// Notify holds the entries of the fleet: whom to tell about all runs. Targets that they name are looked for.
	Notify []*v1.Notification
	// ExternalURL returns the URL at which people open the page, or "" if it is not known. Default: it is not known.
	ExternalURL func() string
	// ApproveUserRuns makes runs that users submit wait for the approval of an operator, and keeps the sessions of users out of
	// their tasks.
	ApproveUserRuns bool
	// FourEyes refuses decisions about tasks of type approval by who submitted their run.
	FourEyes bool
	// TLS configures https for Listen. Default: Listen serves http.
	TLS *tls.Config
	// PeerURL is the URL under which other gateways of the deployment reach this one, for sessions on nodes that are
	// connected to it. Default: the address that Listen binds, with the host name of the machine in place of an unspecified
	// address.
	PeerURL string
	// PeerTLS configures connections to other gateways with an https URL. Default: the system's certificate authorities.
	PeerTLS *tls.Config
	// Hosts are further host names under which the gateway answers on a loopback address, besides localhost, the machine's
	// own name and IP addresses. A reverse proxy on the same machine needs them.
	Hosts []string
	// Defaults are the settings of runs that do not set their own.
	Defaults definition.RunDefaults
	// Limits bound the resources that clients can make the gateway hold.
	Limits edge.Limits
	// SSHAddress is the address, host:port, on which Listen accepts SSH clients. Default: it accepts none.
	SSHAddress string
	// SSHPort is the port under which SSH clients reach the gateway. Default: the port of SSHAddress.
	SSHPort int
	// SSHHost is the host name under which SSH clients reach the gateway. Default: clients use the name that they know.
	SSHHost string
	// PollInterval is the shortest time between two polls of a watched run. Default: 100 ms.
	PollInterval time.Duration
	// StreamKeepAlive is the idle time after which a stream of server-sent events sends a comment. Default: 15 s.
	StreamKeepAlive time.Duration
	// StreamWriteTimeout is how long a write to a client of server-sent events may block. Default: 30 s.
	StreamWriteTimeout time.Duration
	// Version is the version of the program that callers see. Default: "devel".
	Version string
	// Now is the clock of the gateway. Default: time.Now.
	Now func() time.Time
}

// WithDefaults returns a copy of c with default values for unset fields.
func (c Config) WithDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.TemporalFault == nil {
		c.TemporalFault = func() error { return nil }
	}
	if c.Version == "" {
		c.Version = "devel"
	}
	if c.Namespace == "" {
		c.Namespace = client.DefaultNamespace
	}
	if c.Nodes == nil && c.Client != nil {
		nodes := registry.New(c.Client).In(c.Namespace)
		if c.Store != nil {
			nodes = nodes.WithStore(c.Store.Identity)
		}
		c.Nodes = nodes
	}
	if c.Targets == nil && c.Store != nil {
		c.Targets = notifications.NewTargets(c.Store, time.Now)
	}
	if c.ExternalURL == nil {
		c.ExternalURL = func() string { return "" }
	}
	c.Limits = c.Limits.WithDefaults()
	if c.PollInterval == 0 {
		c.PollInterval = 100 * time.Millisecond
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate returns an error that lists every invalid field of c.
func (c Config) Validate() error {
	var errs []error
	if c.Client == nil {
		errs = append(errs, errors.New("gateway: Client is missing"))
	}
	if c.Store == nil {
		errs = append(errs, errors.New("gateway: Store is missing"))
	}
	errs = append(errs, c.Limits.Validate())
	if err := c.Defaults.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("gateway: %w", err))
	}
	if c.SSHAddress != "" && c.Observer {
		errs = append(errs, errors.New("gateway: SSHAddress must be empty for an observer, which opens no sessions"))
	}
	if c.PollInterval < 0 {
		errs = append(errs, errors.New("gateway: PollInterval is negative"))
	}
	return errors.Join(errs...)
}
