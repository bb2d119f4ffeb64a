package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/config"
	"switchyard/cli/credentials"
	"switchyard/cli/tlsfiles"
)

const (
	gatewayFlagName   = "gateway"
	tokenFileFlagName = "token-file"
	// Files that a client needs for a gateway with an https URL.
	caFlagName, clientCertFlagName, clientKeyFlagName = "ca", "client-cert", "client-key"
	// tokenVariable holds the token. There is no flag for it because every user of a machine sees the flags of a
	// process.
	tokenVariable = "SWITCHYARD_TOKEN"
)

// gatewayFlag adds --gateway and the flags for logging in to it.
func gatewayFlag(cmd *cobra.Command, usage string) *string {
	cmd.Flags().String(tokenFileFlagName, "", "file with the token for the gateway, which must be private (default $"+tokenVariable+", else the token of switchyard login)")
	cmd.Flags().String(caFlagName, "", "CA certificates of an https gateway, in PEM (default the system's)")
	cmd.Flags().String(clientCertFlagName, "", "client certificate for the gateway, in PEM, if it requires one")
	cmd.Flags().String(clientKeyFlagName, "", "key of --client-cert, in PEM")
	return cmd.Flags().String(gatewayFlagName, "", usage)
}

// clientFlag adds --gateway to a command that always needs a gateway.
func clientFlag(cmd *cobra.Command) *string {
	return gatewayFlag(cmd, "URL of the gateway (default "+client.DefaultURL+")")
}

// openClient returns a client of the gateway that the flags of a command name. The caller must close it.
func (s *system) openClient(cmd *cobra.Command) (*client.Client, error) {
	return s.openClientAt(cmd, stringFlag(cmd, gatewayFlagName))
}

// openClientAt returns a client of the gateway at an address, with the token that the flags of a command name.
func (s *system) openClientAt(cmd *cobra.Command, address string) (*client.Client, error) {
	url, err := client.ParseURL(address)
	if err != nil {
		return nil, err
	}
	token, err := s.token(cmd, url.String())
	if err != nil {
		return nil, err
	}
	if token != "" && url.Scheme == "http" && !client.IsLoopback(url) {
		fmt.Fprintf(s.screen, "the token is sent to %s unencrypted; use https on a shared network\n", url)
	}
	files, err := clientTLS(cmd)
	if err != nil {
		return nil, err
	}
	return client.New(url, client.Options{Token: token, TLS: files}), nil
}

// clientTLS returns the TLS configuration that the flags of a command set for a gateway with an https URL, or nil.
func clientTLS(cmd *cobra.Command) (*tls.Config, error) {
	return tlsfiles.Client{
		CA: stringFlag(cmd, caFlagName), Cert: stringFlag(cmd, clientCertFlagName), Key: stringFlag(cmd, clientKeyFlagName),
	}.Config()
}

// token returns the token for a gateway, or "" if there is none.
func (s *system) token(cmd *cobra.Command, gateway string) (string, error) {
	path := stringFlag(cmd, tokenFileFlagName)
	if path != "" && !s.isFromFile(tokenFileFlagName) {
		return credentials.ReadToken(path)
	}
	if token := strings.TrimSpace(s.getenv(tokenVariable)); token != "" {
		return token, nil
	}
	// A token file named in the settings file belongs only to the gateway named there.
	if path != "" && s.isFromFile(gatewayFlagName) {
		return credentials.ReadToken(path)
	}
	return credentials.Load(credentials.Path(s.getenv), gateway)
}

// isFromFile reports whether the value of a flag comes from the settings file.
func (s *system) isFromFile(flag string) bool {
	origin := s.origins[flag]
	return origin != "" && !strings.HasPrefix(origin, "--") && origin != config.Variable(flag)
}

// stringFlag returns the value of a flag, or "" if the command does not have it.
func stringFlag(cmd *cobra.Command, name string) string {
	if f := cmd.Flags().Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// onGateway returns the run function of a command that calls do with a client of the gateway named by its flags.
func onGateway(sys *system, do func(context.Context, *client.Client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a, err := sys.openClient(cmd)
		if err != nil {
			return err
		}
		defer a.Close()
		return do(cmd.Context(), a, args)
	}
}
