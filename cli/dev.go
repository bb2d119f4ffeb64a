package cli

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/stack"
	"switchyard/cli/tlsfiles"
	"switchyard/workers/embedded"
)

func newDev(sys *system) *cobra.Command {
	var (
		nodes                     = nodeFlags{command: "dev"}
		fleet                     fleetFlags
		db, store                 string
		sshDoor                   stack.SSHDoor
		allowedHosts              []string
		port, gatewayPort, uiPort int
	)
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run the whole stack on this machine until Ctrl-C",
		Long: `Runs the whole stack on this machine until Ctrl-C: Temporal and its Web UI, the gateway
and some nodes. With --db its state survives restarts, kill -9 included.`,
		Args: arguments(0, 0, ""),
	}
	flags := cmd.Flags()
	flags.StringVar(&db, "db", "", "file for Temporal's state (default in memory)")
	flags.StringVar(&store, "store", "", "folder or URL for logs and results (default DB.store, or a temporary folder without --db)")
	retention := retentionFlag(flags)
	var quotas quotaFlags
	quotas.add(flags)
	flags.IntVar(&port, "port", 7233, "port of Temporal, or 0 for a free port")
	flags.IntVar(&gatewayPort, "gateway-port", 7280, "port of the gateway, or 0 for a free port")
	flags.IntVar(&uiPort, "ui-port", 8233, "port of Temporal's Web UI, or 0 for a free port; a free port is also used if the default is taken")
	allowedHostFlag(flags, &allowedHosts)
	var auth authFlags
	auth.add(flags)
	var files tlsfiles.Server
	tlsFlags(flags, &files)
	secretsKey := secretsKeyFlag(flags)
	sshFlags(flags, &sshDoor)
	fleet.add(flags)
	nodes.addSome(flags)
	level := logFlag(cmd, "info")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		configs, err := nodes.configs(0)
		if err != nil {
			return err
		}
		if store == "" && db != "" {
			store = db + ".store"
		}
		spool := "" // empty: the spool ends with this process, like its runs
		if db != "" {
			spool = db + ".spool"
		}
		log := logger(sys, level)
		cfg := stack.Config{
			Temporal: &embedded.Options{DBFile: db, UIFallback: sys.origins["ui-port"] == "", Logger: log},
			Store:    store, SpoolDir: spool, Control: true, Nodes: configs, Logger: log, GatewayFlag: "--gateway-port", Metrics: true,
			AllowedHosts: allowedHosts, SSH: sshDoor,
		}
		if err := fleet.into(&cfg); err != nil {
			return err
		}
		if cfg.Retention, err = checkRetention(*retention); err != nil {
			return err
		}
		if err := quotas.into(&cfg); err != nil {
			return err
		}
		for _, p := range []struct {
			flag    string
			port    int
			address *string
		}{
			{"port", port, &cfg.Temporal.Address},
			{"gateway-port", gatewayPort, &cfg.Gateway},
			{"ui-port", uiPort, &cfg.Temporal.UIAddress},
		} {
			if p.port < 0 || p.port > 65535 {
				return exit.Usagef("--%s %d: it must be 0 to 65535", p.flag, p.port)
			}
			*p.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))
		}
		if cfg.TLS, err = files.Config(); err != nil {
			return err
		}
		warnOfPublicKey(sys, files)
		if err := auth.into(&cfg); err != nil {
			return err
		}
		if err := auth.tokenFileInto(&cfg, sys.getenv); err != nil {
			return err
		}
		if cfg.SecretsKey, err = secretsKeyOr(*secretsKey, store, sys.getenv); err != nil {
			return err
		}
		if err := checkSSHFlags(&cfg); err != nil {
			return err
		}
		sys.origins.Log(log, cmd, sys.getenv, false)
		return serveStack(cmd.Context(), sys, cfg, func(s *stack.Stack) error {
			ui := s.Temporal().UIURL()
			if uiPort != 0 && !strings.HasSuffix(ui, ":"+strconv.Itoa(uiPort)) {
				ui += fmt.Sprintf(" (port %d is taken)", uiPort)
			}
			_, err := fmt.Fprintf(sys.stdout, "Temporal   %s\nWeb UI     %s\nGateway    %s\nStore      %s\n%s%s\nsubmit a run:  switchyard submit FILE%s\n",
				s.Temporal().Address(), ui, s.Gateway().URL(), s.Store().Location(), sshHint(s, cfg.SSH), adminTokenHint(s), gatewayHint(s.Gateway().URL()))
			return err
		})
	}
	return cmd
}

// gatewayHint returns the flag that a command needs to reach a gateway, or "" for the default gateway.
func gatewayHint(url string) string {
	if url == client.DefaultURL {
		return ""
	}
	return " --gateway " + url
}
