package cli

import (
	"crypto/tls"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/stack"
	"switchyard/cli/tlsfiles"
	"switchyard/gateway"
	"switchyard/workers"
)

func newGateway(sys *system) *cobra.Command {
	cfg := stack.Config{Control: true, Metrics: true, GatewayFlag: "--address"}
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Serve the API and execute runs on an existing Temporal server",
		Long: `Serves the API and executes the runs until Ctrl-C. The Temporal server is configured with
Temporal's own settings: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, ..., or its profile file.`,
		Args: arguments(0, 0, ""),
	}
	cmd.Flags().StringVar(&cfg.Gateway, "address", gateway.DefaultAddress, "host:port to listen on")
	cmd.Flags().StringVar(&cfg.Store, "store", "", storeUsage)
	allowedHostFlag(cmd.Flags(), &cfg.AllowedHosts)
	var auth authFlags
	auth.add(cmd.Flags())
	var files tlsfiles.Server
	tlsFlags(cmd.Flags(), &files)
	var peerCA string
	cmd.Flags().StringVar(&cfg.PeerURL, "peer-url", "", "URL at which the other gateways reach this one (default its listen address)")
	cmd.Flags().StringVar(&peerCA, "peer-ca", "", "CA certificates of the other gateways, in PEM (default the system's)")
	secretsKey := secretsKeyFlag(cmd.Flags())
	sshFlags(cmd.Flags(), &cfg.SSH)
	retention := retentionFlag(cmd.Flags())
	var quotas quotaFlags
	quotas.add(cmd.Flags())
	var fleet fleetFlags
	fleet.add(cmd.Flags())
	role := &output.Choice{Value: string(workers.RoleAuto)}
	for _, r := range workers.Roles {
		role.Allowed = append(role.Allowed, string(r))
	}
	cmd.Flags().Var(role, "role", "auto: own the placement queue when it has no owner; leader: own it or fail to start; worker: never own it; observer: only read")
	level := logFlag(cmd, "info")
	// The doctor calls PreRunE, too.
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		cfg.Role = workers.Role(role.Value)
		if err := fleet.into(&cfg); err != nil {
			return err
		}
		if cfg.Retention, err = checkRetention(*retention); err != nil {
			return err
		}
		if err := quotas.into(&cfg); err != nil {
			return err
		}
		if cfg.TLS, err = files.Config(); err != nil {
			return err
		}
		if cfg.PeerURL, cfg.PeerTLS, err = peersOf(cfg.PeerURL, peerCA, files); err != nil {
			return err
		}
		if err := auth.into(&cfg); err != nil {
			return err
		}
		if err := checkSSHFlags(&cfg); err != nil {
			return err
		}
		return stack.CheckControlStore(cfg.Store)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		cfg.Logger = logger(sys, level)
		warnOfPublicKey(sys, files)
		if cfg.Store, err = gatewayStore(cmd.Context(), cfg.Store, sys.getenv, cfg.Logger); err != nil {
			return err
		}
		if err := auth.tokenFileInto(&cfg, sys.getenv); err != nil {
			return err
		}
		if cfg.SecretsKey, err = secretsKeyOr(*secretsKey, cfg.Store, sys.getenv); err != nil {
			return err
		}
		sys.origins.Log(cfg.Logger, cmd, sys.getenv, true)
		return serveStack(cmd.Context(), sys, cfg, func(s *stack.Stack) error {
			_, err := fmt.Fprintf(sys.stdout, "Gateway    %s\nStore      %s\n%s%s", s.Gateway().URL(), cfg.Store, sshHint(s, cfg.SSH), adminTokenHint(s))
			return err
		})
	}
	return cmd
}

// peersOf returns the URL at which peers reach this gateway, or "" for its own address, and the TLS configuration with
// which it reaches them: its own certificate, if it has one.
func peersOf(address, ca string, files tlsfiles.Server) (string, *tls.Config, error) {
	if address != "" {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			return "", nil, exit.Usagef("--peer-url %q is not a gateway URL such as https://gateway-1:7280", address)
		}
	}
	cfg, err := tlsfiles.Client{CA: ca, Cert: files.Cert, Key: files.Key}.Config()
	if err != nil {
		return "", nil, exit.Usagef("--peer-ca: %w", err)
	}
	return address, cfg, nil
}
