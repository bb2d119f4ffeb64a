package gateway

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/metrics"
	"switchyard/activities/registry"
	"switchyard/activities/secrets/vault"
	"switchyard/activities/store"
	"switchyard/gateway/auth"
	"switchyard/gateway/edge"
	"switchyard/gateway/tokens"
	"switchyard/workflows/definition"
)

// Config is what a Gateway is made of.
type Config struct {
	// Client talks to Temporal. The gateway does not close it.
	Client client.Client
	// Store holds result records, statuses and logs. The gateway does not close it.
	Store *store.Store
	// Namespace of Temporal that Client works in. Default: "default".
	Namespace string
	// Nodes is the registry of the nodes. Default: the one in Temporal.
	Nodes Nodes
	// Observer serves what reads, and refuses what changes something.
	Observer bool
	// Logger takes what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
	// Metrics are the figures of the process, served under GET /metrics. Default: they are not served.
	Metrics *metrics.Metrics
	// Authenticator finds out who sends a request. Default: authentication is off, and each caller may do all.
	Authenticator auth.Authenticator
	// Tokens are what callers log in with, if Authenticator asks for them.
	Tokens *tokens.Registry
	// Vault has the secrets of tasks. Default: the gateway keeps none.
	Vault *vault.Vault
	// ApproveUserRuns has runs that users submit wait for the approval of an operator.
	ApproveUserRuns bool
	// TLS is how Listen serves https. Default: it serves http.
	TLS *tls.Config
	// PeerURL is where the other gateways of the deployment reach this one, for sessions on nodes that are connected to it.
	// Default: what Listen listens on, by the name of the machine if that is all addresses.
	PeerURL string
	// PeerTLS is how other gateways with an https URL are reached. Default: with the authorities of the system.
	PeerTLS *tls.Config
	// Hosts are the names, besides localhost, the machine's own and IP addresses,
	// under which the gateway answers on a loopback address; a reverse proxy on the
	// same machine makes them necessary.
	Hosts []string
	// Defaults are what runs are given that do not say otherwise.
	Defaults definition.RunDefaults
	// Limits bound what clients make the gateway hold.
	Limits edge.Limits
	// SSHAddress is where Listen listens for SSH clients, host:port. Default: it does not.
	SSHAddress string
	// SSHPort is where SSH clients reach the gateway. Default: the port of SSHAddress.
	SSHPort int
	// SSHHost is the name under which SSH clients reach the gateway. Default: clients know it.
	SSHHost string
	// PollInterval is the shortest time between two looks at a watched run.
	// Default: 100 ms.
	PollInterval time.Duration
	// StreamKeepAlive is the pause after which a stream of server-sent events sends a comment. Default: 15 s.
	StreamKeepAlive time.Duration
	// StreamWriteTimeout is how long a client of server-sent events may take nothing. Default: 30 s.
	StreamWriteTimeout time.Duration
	// Version is that of the program, for agents. Default: "devel".
	Version string
	// Now is the clock that lists of runs start from. Default: time.Now.
	Now func() time.Time
}

// WithDefaults returns c with what is missing filled in.
func (c Config) WithDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Version == "" {
		c.Version = "devel"
	}
	if c.Namespace == "" {
		c.Namespace = client.DefaultNamespace
	}
	if c.Nodes == nil && c.Client != nil {
		nodes := registry.New(c.Client)
		if c.Store != nil {
			nodes = nodes.WithStore(c.Store.Identity)
		}
		c.Nodes = nodes
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

// Validate reports everything that is wrong with c.
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
		errs = append(errs, errors.New("gateway: SSHAddress is set, and an observer opens no sessions"))
	}
	if c.PollInterval < 0 {
		errs = append(errs, errors.New("gateway: PollInterval is negative"))
	}
	return errors.Join(errs...)
}
